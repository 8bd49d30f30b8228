import { lastOf } from "../../core/required.ts";
import type { EmailContent } from "./render-email.ts";

const WIDTH = 72;

/** Breaks at spaces. A longer word stays whole, since it may be a URL. */
function wrap(text: string): string {
  const lines = [""];
  for (const word of text.split(" ")) {
    const line = lastOf(lines);
    if (line === "") lines[lines.length - 1] = word;
    else if (line.length + 1 + word.length <= WIDTH) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines.join("\n");
}

/** The link is on its own line, unbroken, so that it can be clicked or copied. */
export function renderEmailText({ paragraphs, action, footnotes }: EmailContent): string {
  const blocks = [
    ...paragraphs.map(wrap),
    ...(action ? [`${wrap(action.label)}:\n${action.url}`] : []),
    ...(footnotes.length > 0 ? ["—", ...footnotes.map(wrap)] : []),
  ];
  return `${blocks.join("\n\n")}\n`;
}
