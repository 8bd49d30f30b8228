import { readFile } from "node:fs/promises";
import { toVisibleLine } from "@stoa/contract";
import { seededRandom } from "@stoa/service/backoffice/demo/seeded-random.ts";
import { zipf } from "./draw.ts";

/** The used fields of a prompt; those of the demo have category and tags. */
export interface Prompt {
  title: string;
  content: string;
  description?: string;
  category?: string;
  tags?: string[];
}

/** Texts of one language and topic, the source of titles and descriptions. */
export interface Shelf {
  lang: string;
  category: string;
  titles: string[];
  sentences: string[];
}

export interface Texts {
  shelves: Shelf[];
  /** The most frequent first. */
  tags: string[];
}

const SEED = 20_261_121;
const CATEGORY_SKEW = 0.8;
const TAGS = 2_000;
/** Only this much of a prompt is used: a few of them are books. */
const MAX_READ_CHARACTERS = 12_000;
const SENTENCE_END = /(?<=[.!?。！？])\s*(?=\p{Lu}|\p{Lo}|$)|\n+/u;
const NO_PROSE = /[{}<>|=_#*`[\]\\]|https?:|^["']|":/;
const BULLET = /^(?:[-–•·→+]|\d+[.)])\s*/;
const NO_TAG = /^(with|from|your|that|this|into|for|and|the)$/;
const MIN_SENTENCE = 40;
const MIN_DENSE_SENTENCE = 15;
const MAX_SENTENCE = 220;
const MAX_TITLE = 70;
const MIN_TAG = 4;

const SCRIPTS: [string, RegExp][] = [
  ["ja", /[\p{Script=Hiragana}\p{Script=Katakana}]/gu],
  ["zh", /\p{Script=Han}/gu],
  ["ko", /\p{Script=Hangul}/gu],
  ["ru", /\p{Script=Cyrillic}/gu],
  ["ar", /\p{Script=Arabic}/gu],
];
const OWN_SCRIPT_PART = 0.2;
/** Frequent words that distinguish languages in Latin script. */
const TELLING: Record<string, string> = {
  en: "the and of to you your with is are for that this will my",
  es: "el los las una para que con por como del",
  pt: "não uma para com você os dos um seu como que",
  fr: "les des une vous est pour dans avec votre et",
  de: "der die und das ist nicht mit für ein eine",
  tr: "ve bir için bu ile olarak gibi daha",
};
const telling = Object.entries(TELLING).map(([lang, words]) => ({ lang, words: new Set(words.split(" ")) }));
/** Sentences in scripts without spaces are shorter. */
export const isDense = (lang: string) => lang === "zh" || lang === "ja";

export function langOf(text: string): string {
  for (const [lang, script] of SCRIPTS) {
    if ((text.match(script)?.length ?? 0) > text.length * OWN_SCRIPT_PART) return lang;
  }
  const words = text.toLowerCase().match(/\p{L}+/gu) ?? [];
  const scores = telling.map((one) => words.filter((word) => one.words.has(word)).length / one.words.size);
  return telling[scores.indexOf(Math.max(...scores))]!.lang;
}

export async function readTexts(file: string, categories: string[]): Promise<Texts> {
  const prompts = JSON.parse(await readFile(file, "utf8")) as Prompt[];
  const random = seededRandom(SEED);
  const byShare = zipf(
    categories.toSorted(() => random.next() - 0.5),
    CATEGORY_SKEW,
  );
  const shelves = new Map<string, Shelf>();
  for (const prompt of prompts) {
    const category = prompt.category ?? byShare.draw(random);
    const lang = langOf(prompt.content.slice(0, MAX_READ_CHARACTERS));
    // Few prompts are not in English, so each other language is one shelf.
    const key = lang === "en" ? `en ${category}` : lang;
    const shelf = shelves.get(key) ?? { lang, category, titles: [], sentences: [] };
    shelves.set(key, shelf);
    shelf.titles.push(titleOf(prompt.title));
    shelf.sentences.push(...sentencesOf(prompt, lang));
  }
  const full = [...shelves.values()].filter(({ sentences }) => sentences.length >= 3);
  for (const shelf of full) shelf.sentences = [...new Set(shelf.sentences)];
  return { shelves: full, tags: tagsOf(prompts) };
}

function titleOf(title: string): string {
  const plain = toVisibleLine(title).replace(/\s+/g, " ").trim();
  if (plain.length <= MAX_TITLE) return plain;
  return plain.slice(0, MAX_TITLE).replace(/\s+\S*$/, "");
}

function sentencesOf({ description, content }: Prompt, lang: string): string[] {
  const text = `${description ?? ""}\n${content.slice(0, MAX_READ_CHARACTERS)}`;
  const shortest = isDense(lang) ? MIN_DENSE_SENTENCE : MIN_SENTENCE;
  return text
    .split(SENTENCE_END)
    .map((sentence) => sentence.replace(/\s+/g, " ").trim().replace(BULLET, ""))
    .filter((sentence) => sentence.length >= shortest && sentence.length <= MAX_SENTENCE)
    .filter((sentence) => !NO_PROSE.test(sentence));
}

/** The prompts' own tags, then words and word pairs of their titles, by frequency. */
function tagsOf(prompts: Prompt[]): string[] {
  const counts = new Map<string, number>();
  const count = (tag: string, weight: number) => counts.set(tag, (counts.get(tag) ?? 0) + weight);
  for (const { title, tags } of prompts) {
    const words = (title.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).filter(
      (word) => word.length >= MIN_TAG && !NO_TAG.test(word),
    );
    for (const tag of tags ?? []) count(tag, 2);
    for (const word of words) count(word, 1);
    for (const [at, word] of words.slice(1).entries()) count(`${words[at]}-${word}`, 0.5);
  }
  return [...counts]
    .filter(([tag]) => tag.length <= 40)
    .toSorted(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))
    .slice(0, TAGS)
    .map(([tag]) => tag);
}
