/** Lists, objects and texts of a response. Some megabytes of them take seconds to parse, in which the process does nothing else. */
const MAX_PARTS = 50_000;

const QUOTE = 34;
const BACKSLASH = 92;
const LIST = 91;
const OBJECT = 123;

/** Whether JSON is too much work to be parsed, however short it is: any user may run the server. Numbers do not count: vectors have many. */
export function hasManyParts(json: string): boolean {
  if (json.length <= MAX_PARTS) return false;
  let parts = 0;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) at = endOfText(json, at + 1);
    else if (code !== LIST && code !== OBJECT) continue;
    if (++parts > MAX_PARTS) return true;
  }
  return false;
}

function endOfText(json: string, from: number): number {
  let at = from;
  while (at < json.length && json.charCodeAt(at) !== QUOTE) at += json.charCodeAt(at) === BACKSLASH ? 2 : 1;
  return at;
}
