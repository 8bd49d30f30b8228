import type { CreateChatCompletion, Variable } from "@stoa/contract";
import { invalidRequest, ruleBroken } from "../errors.ts";

type Wish = Pick<CreateChatCompletion, "messages" | "metadata">;

/** What a request says for the variables: each by its name, or a text alone; and where that stands. */
export type Said = { at: string } & ({ variables: Record<string, unknown> } | { text: string });

/** `metadata.variables` where there are any, else the last user message. Throws where neither can be read. */
export function saidIn({ messages, metadata }: Wish): Said {
  const given = metadata?.variables;
  if (given !== undefined) return { variables: named(given), at: "metadata.variables" };
  const last = messages.findLastIndex(({ role }) => role === "user");
  const at = `messages[${last}].content`;
  const text = last === -1 ? "" : textOf(messages[last]!.content ?? "", at);
  // An empty message is what clients send that must send one.
  if (text.trim() === "") return { variables: {}, at };
  const variables = objectIn(text);
  return variables ? { variables, at } : { text, at };
}

function named(given: string | Record<string, unknown>): Record<string, unknown> {
  const variables = typeof given === "string" ? objectIn(given) : given;
  if (!variables) throw invalidRequest("metadata.variables", "must be a JSON object");
  return variables;
}

function textOf(content: string | { type: string; text?: string | undefined }[], at: string): string {
  if (typeof content === "string") return content;
  const texts = content.map(({ type, text }, index) => {
    if (type === "text" && text !== undefined) return text;
    throw invalidRequest(`${at}[${index}]`, "cannot be honoured: variables are text");
  });
  return texts.join("");
}

/** null: it is no JSON text of an object. */
function objectIn(text: string): Record<string, unknown> | null {
  if (!/^\s*\{/.test(text)) return null;
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return null;
  }
}

/** A text alone is the value of the one variable that must be given, or of the only one that there is. */
export function variablesOf(said: Said, declared: readonly Variable[]): Record<string, unknown> {
  if ("variables" in said) return said.variables;
  // A prompt without variables says the same whatever it is told.
  if (declared.length === 0) return {};
  const needed = declared.filter((variable) => variable.required && variable.default === undefined);
  const [only, another] = needed.length === 0 ? declared : needed;
  if (!another) return { [only!.name]: said.text };
  const names = declared.map(({ name }) => name).join(", ");
  throw ruleBroken(said.at, `must be a JSON object with the variables of this prompt: ${names}`);
}
