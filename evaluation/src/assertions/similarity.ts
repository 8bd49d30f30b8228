import { fMeasure, nGram, treeBankTokenize } from "js-rouge";
import { type Finding, type Subject, UndecidableError } from "./finding.ts";

const DEFAULT_ROUGE = 0.75;
const DEFAULT_BLEU = 0.5;
const MAX_ORDER = 4;
/** BLEU's logarithm needs a precision above 0. */
const SMALLEST_PRECISION = 1e-7;

function scored(name: string, score: number, threshold: number): Finding {
  const isMet = score >= threshold;
  return { isMet, score, fact: `${name} is ${score.toFixed(4)}; the threshold is ${threshold}.` };
}

/** ROUGE-1 (Lin 2004) with clipped counts of words, F-measure with beta 1. */
export function rougeN({ text, value, threshold = DEFAULT_ROUGE }: Subject): Finding {
  if (typeof value !== "string") throw new UndecidableError("The value must be a text.");
  return scored("ROUGE-N", rougeScore(text.toLowerCase(), value.toLowerCase()), threshold);
}

function rougeScore(output: string, reference: string): number {
  const [outputWords, referenceWords] = [treeBankTokenize(output), treeBankTokenize(reference)];
  if (outputWords.length === 0 || referenceWords.length === 0) return 0;
  const [outputGrams, referenceGrams] = [nGram(outputWords, 1), nGram(referenceWords, 1)];
  const overlap = countOverlap(countOf(outputGrams), countOf(referenceGrams));
  return overlap === 0 ? 0 : fMeasure(overlap / outputGrams.length, overlap / referenceGrams.length, 1);
}

/** BLEU (Papineni et al. 2002) of orders 1 to 4, without the orders for which the output is too short. */
export function bleu({ text, value, threshold = DEFAULT_BLEU }: Subject): Finding {
  return scored("BLEU", bleuScore(text, referencesOf(value)), threshold);
}

function bleuScore(output: string, references: string[]): number {
  if (output.trim() === "") return 0;
  const words = wordsOf(output);
  const referenceWords = references.map(wordsOf);
  const orders = Array.from({ length: Math.min(MAX_ORDER, words.length) }, (_, index) => index + 1);
  const logarithms = orders.map((order) =>
    Math.log(precision(words, referenceWords, order) || SMALLEST_PRECISION),
  );
  const mean = logarithms.reduce((sum, logarithm) => sum + (1 / orders.length) * logarithm, 0);
  return brevityPenalty(words.length, closestLength(words.length, referenceWords)) * Math.exp(mean);
}

function precision(words: string[], references: string[][], order: number): number {
  const counts = countOf(gramsOf(words, order));
  const overlaps = references.map((reference) => countOverlap(counts, countOf(gramsOf(reference, order))));
  return Math.max(...overlaps) / (words.length - order + 1);
}

const closestLength = (length: number, references: string[][]): number =>
  references
    .map((reference) => reference.length)
    .reduce((best, other) => {
      const [distance, otherDistance] = [Math.abs(best - length), Math.abs(other - length)];
      return otherDistance < distance || (otherDistance === distance && other < best) ? other : best;
    });

const brevityPenalty = (length: number, reference: number): number =>
  length > reference ? 1 : Math.exp(1 - reference / length);

/** GLEU (Wu et al. 2016): the smaller of precision and recall over the sequences of 1 to 4 words; the best reference counts. */
export function gleu({ text, value, threshold = DEFAULT_BLEU }: Subject): Finding {
  return scored("GLEU", gleuScore(text, referencesOf(value)), threshold);
}

function gleuScore(output: string, references: string[]): number {
  const words = wordsWithoutPeriods(output);
  if (words.length === 0) return 0;
  const counts = countAllOrders(words);
  return Math.max(...references.map((reference) => gleuOfOne(words, counts, wordsWithoutPeriods(reference))));
}

function gleuOfOne(words: string[], counts: Map<string, number>, reference: string[]): number {
  if (reference.length === 0) return 0;
  const overlap = countOverlap(counts, countAllOrders(reference));
  return overlap / Math.max(totalGrams(words.length), totalGrams(reference.length));
}

function totalGrams(words: number): number {
  let total = 0;
  for (let order = 1; order <= MAX_ORDER; order++) total += Math.max(0, words - order + 1);
  return total;
}

function countAllOrders(words: string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (let order = 1; order <= MAX_ORDER; order++)
    // Words have no spaces, so that sequences of different orders differ.
    for (const gram of gramsOf(words, order)) counts.set(gram, (counts.get(gram) ?? 0) + 1);
  return counts;
}

function referencesOf(value: unknown): string[] {
  const references = Array.isArray(value) ? value : [value];
  if (references.length > 0 && references.every((item) => typeof item === "string")) return references;
  throw new UndecidableError("The value must be a text or a list of texts.");
}

const wordsOf = (text: string): string[] => text.toLowerCase().trim().split(/\s+/);

function wordsWithoutPeriods(text: string): string[] {
  const words = wordsOf(text).map((word) => word.replace(/(?<!\.)\.+$/, ""));
  return words.some((word) => word !== "") ? words : [];
}

function* gramsOf(words: string[], order: number): Generator<string> {
  for (let start = 0; start + order <= words.length; start++)
    yield words.slice(start, start + order).join(" ");
}

function countOf(grams: Iterable<string>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const gram of grams) counts.set(gram, (counts.get(gram) ?? 0) + 1);
  return counts;
}

function countOverlap(counts: Map<string, number>, others: Map<string, number>): number {
  let overlap = 0;
  for (const [gram, count] of counts) overlap += Math.min(count, others.get(gram) ?? 0);
  return overlap;
}
