/**
 * The products of every compared system, generated from their number, so that all systems have the same. The peers'
 * loaders import this file in their own processes.
 */

export interface Product {
  slug: string;
  title: string;
  description: string;
  category: string;
  tags: string[];
  priceMinor: number;
  createdAt: Date;
}

/** The number of different products; a larger catalogue has copies with their own titles. */
export const DIFFERENT = 10_000;
const COPY_AGE_MS = 3_600_000;
const FIRST_AT = Date.UTC(2026, 0, 1);
const MINUTE_MS = 60_000;

const words = (text: string) => text.split(" ");

export const CATEGORIES = words(
  "marketing coding writing design education finance legal sales support research productivity hr health travel gaming music video data seo social",
);
/** A product has up to four of them; each is in about a tenth of the texts. */
export const TAGS = words(
  "email blog summary translation chatbot sql python typescript react logo branding resume contract invoice budget forecast lesson quiz story poem podcast script ads keywords outline review testing debugging refactor analytics dashboard survey persona pitch slides newsletter tweet thread caption recipe",
);
const MANNERS = words(
  "Advanced Simple Complete Fast Reliable Creative Professional Friendly Concise Detailed Multilingual Structured Adaptive Practical Modern Essential Ultimate Guided",
);
export const TOOLS = words(
  "Generator Assistant Writer Planner Analyzer Reviewer Builder Coach Toolkit Workflow Optimizer Converter Summarizer Editor Explainer Checker",
);
const TALK = words(
  "turn rough notes into polished output with clear steps and sensible defaults this prompt asks for the goal audience tone and length then produces several variants you can compare it keeps facts separate from opinions cites sources when given and flags missing information before answering works with short or long context supports tables bullet lists and plain paragraphs includes examples of good and bad results plus a checklist for quality tested on real customer projects updated every month with feedback from buyers easy to adapt to your brand voice or domain vocabulary saves hours of manual editing each week",
);
const SYLLABLES = [..."bdfgklmnprtvz"].flatMap((consonant) => [..."aou"].map((vowel) => consonant + vowel));
const MAKERS = 2_000;

/** A name of six letters, in the texts of five of ten thousand products. */
export function makerAt(at: number): string {
  const place = (at % MAKERS) * 29;
  const count = SYLLABLES.length;
  const syllables = [place, Math.floor(place / count), Math.floor(place / count ** 2)];
  return syllables.map((syllable) => SYLLABLES[syllable % count]).join("");
}

/** mulberry32. */
function randomOf(seed: number): () => number {
  let state = (seed * 2_654_435_761 + 12_345) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const capital = (text: string) => text[0]!.toUpperCase() + text.slice(1);

function originalAt(at: number): Product {
  const random = randomOf(at + 1);
  const pick = (from: string[]) => from[Math.floor(random() * from.length)]!;
  const category = CATEGORIES[at % CATEGORIES.length]!;
  const tags = [...new Set([pick(TAGS), pick(TAGS), pick(TAGS), pick(TAGS)])];
  const talk = Array.from({ length: 40 + Math.floor(random() * 40) }, () => pick(TALK)).join(" ");
  return {
    slug: `p-${at}-${tags[0]}-${category}`,
    title: `${pick(MANNERS)} ${capital(tags[0]!)} ${pick(TOOLS)} for ${capital(category)} #${at}`,
    description: `${capital(talk)}. Best for ${tags.join(", ")}. Made by ${makerAt(at)}.`,
    category,
    tags,
    // $1.99 to $99.99, most of them low.
    priceMinor: 199 + Math.floor(random() ** 2 * 9_800),
    createdAt: new Date(FIRST_AT + at * MINUTE_MS),
  };
}

/** Copies equal those of filling.ts in the peers' databases. */
export function productAt(at: number): Product {
  const original = originalAt(at % DIFFERENT);
  const copy = Math.floor(at / DIFFERENT);
  if (copy === 0) return original;
  return {
    ...original,
    slug: `${original.slug}-${copy}`,
    title: `${original.title} v${copy}`,
    createdAt: new Date(original.createdAt.getTime() - copy * COPY_AGE_MS),
  };
}
