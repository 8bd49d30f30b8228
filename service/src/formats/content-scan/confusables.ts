/** Letters of other scripts that look like Latin ones, after UTS #39; NFKC already maps styled and full-width letters. */
const LOOKALIKES: Record<string, string> = {
  a: "аɑα",
  b: "Ьƅʙ",
  c: "сϲᴄ",
  d: "ԁɗ",
  e: "еєҽ",
  g: "ɡցɢ",
  h: "һհʜ",
  i: "іιɪ",
  j: "јϳ",
  k: "κкᴋ",
  l: "ӏⅼʟ",
  m: "мᴍ",
  n: "ոη",
  o: "оοօσᴏ",
  p: "рρᴘ",
  q: "ԛգ",
  r: "гᴦʀ",
  s: "ѕꜱ",
  t: "тτᴛ",
  u: "υսᴜ",
  v: "ѵνᴠ",
  w: "ԝѡᴡ",
  x: "хχ",
  y: "уүγʏ",
  z: "ᴢ",
  A: "АΑ",
  B: "ВΒ",
  C: "СϹ",
  E: "ЕΕ",
  H: "НΗ",
  I: "ІΙ",
  J: "Ј",
  K: "КΚ",
  M: "МΜ",
  N: "Ν",
  O: "ОΟ",
  P: "РΡ",
  S: "Ѕ",
  T: "ТΤ",
  X: "ХΧ",
  Y: "ҮΥ",
  Z: "Ζ",
};

const latinOf = new Map(
  Object.entries(LOOKALIKES).flatMap(([latin, others]) => [...others].map((other) => [other, latin])),
);

const LOOKALIKE = new RegExp(`[${[...latinOf.keys()].join("")}]`, "gu");

export const isLookalike = (character: string): boolean => latinOf.has(character);

/** The text with Latin letters for those that look like them. Has the same length. */
export const toLatin = (text: string): string =>
  text.replace(LOOKALIKE, (character) => latinOf.get(character) ?? character);
