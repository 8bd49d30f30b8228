/**
 * Generates prompts.json, the demo shop's products, from the public collection and our picks.tsv. Usage: `node
 * service/src/backoffice/demo/generate-prompts.ts <prompts.json of the collection>`. A fixed seed draws prices and
 * views, which no source has.
 */

import { readFile, writeFile } from "node:fs/promises";
import type { Provider } from "@stoa/contract";
import { required } from "../../core/required.ts";
import { listTemplateVariables, parseTemplate } from "../../formats/prompt-template/template.ts";
import { type Random, seededRandom } from "./seeded-random.ts";

const SEED = 20_260_320;
const MEDIAN_VIEWS = 300;
/** The exponent of the views' decline: with some 300 products the first has a few hundred thousand views. */
const VIEWS_STEEPNESS = 1.05;
/** How far chance moves a prompt from its age's rank: 0 not at all, 1 anywhere. */
const RANK_NOISE = 0.7;
/** Sales grow slower than views. */
const SALES_PER_VIEWS_EXPONENT = 0.4;
const MEDIAN_PRICE_MINOR = 550;
const PRICE_SPREAD = 0.8;
const PRICE_RANGE_MINOR = { from: 100, to: 5_000 };

const textProviders: Provider[] = [
  "openai",
  "anthropic",
  "google",
  "mistral",
  "groq",
  "deepseek",
  "xai",
  "ollama",
];
const imageProviders: Provider[] = ["openai", "google", "xai"];

interface SourcePrompt {
  title: string;
  content: string;
  kind: "text" | "structured" | "image";
  variables: { name: string; default?: string }[];
}

interface Pick {
  sourceTitle: string;
  category: string;
  tags: string[];
  lang: string;
  description: string;
  /** The title in the shop. */
  title: string;
}

const source = process.argv[2];
if (!source) throw new Error("Name the prompts.json of the collection");
const prompts = new Map<string, SourcePrompt>(
  (JSON.parse(await readFile(source, "utf8")) as SourcePrompt[]).map((prompt) => [prompt.title, prompt]),
);
const picks = parsePicks(await readFile(new URL("./picks.tsv", import.meta.url), "utf8"));
const random = seededRandom(SEED);
const views = drawViews(picks.length, random);
const products = picks.map((pick, at) =>
  toProduct(pick, prompts.get(pick.sourceTitle), required(views[at], "the views of a product"), random),
);
// One product per line, so that a diff shows single changes.
const lines = products.map((product) => JSON.stringify(product)).join(",\n");
await writeFile(new URL("./prompts.json", import.meta.url), `[\n${lines}\n]\n`);

function parsePicks(table: string): Pick[] {
  const [, ...rows] = table.trimEnd().split("\n");
  return rows.map((row) => {
    const [sourceTitle, category, tags, lang, description, title] = row.split("\t");
    if (!sourceTitle || !category || !tags || !lang || !description) throw new Error(`Not a pick: ${row}`);
    return { sourceTitle, category, tags: tags.split(","), lang, description, title: title ?? sourceTitle };
  });
}

/** Picks are sorted by age; the oldest have the most views, with some noise. */
function drawViews(count: number, random: Random): number[] {
  const places = Array.from({ length: count }, (_, at) => at / count + RANK_NOISE * random.next());
  const ranking = places.toSorted((a, b) => a - b);
  return places.map((place) => viewsAtRank(ranking.indexOf(place), count));
}

/** Log-logistic: half of the products are below the median, with a long tail above. */
function viewsAtRank(rank: number, count: number): number {
  const quantile = 1 - (rank + 0.5) / count;
  return Math.round(MEDIAN_VIEWS * (quantile / (1 - quantile)) ** VIEWS_STEEPNESS);
}

function toProduct(pick: Pick, prompt: SourcePrompt | undefined, views: number, random: Random) {
  if (!prompt) throw new Error(`The collection has no "${pick.sourceTitle}"`);
  const { title, description, category, tags, lang } = pick;
  return {
    title,
    description,
    category,
    tags,
    compatibility: drawCompatibility(prompt, random),
    priceMinor: drawPrice(random),
    content: prompt.content,
    variables: variablesWithDefaults(prompt),
    lang,
    views,
    weight: Math.max(1, Math.round(views ** SALES_PER_VIEWS_EXPONENT)),
  };
}

/** The collection stores defaults apart from the template. */
function variablesWithDefaults({ content, variables }: SourcePrompt) {
  const defaults = new Map(variables.map((variable) => [variable.name, variable.default]));
  return listTemplateVariables(parseTemplate(content)).map(({ name, default: inTemplate }) => {
    const value = inTemplate ?? defaults.get(name);
    const description = describedIn(content, name);
    return {
      name,
      ...(description && { description }),
      required: value === undefined,
      ...(value !== undefined && { default: value }),
    };
  });
}

/** Many prompts describe their variables in a list: "- {{topic}} - the main idea". */
function describedIn(content: string, name: string): string | undefined {
  const line = new RegExp(String.raw`^\W*\{\{${name}\}\}\W*?\s*[-–:]\s+([^{}\n]{3,200})$`, "m").exec(content);
  return line?.[1]?.trim();
}

/** Two to five providers, the popular ones more often, in the order of our list. */
function drawCompatibility({ kind }: SourcePrompt, random: Random): Provider[] {
  const candidates = kind === "image" ? imageProviders : textProviders;
  const count = Math.min(candidates.length, random.integer(2, 5));
  const drawn = new Set<Provider>();
  while (drawn.size < count) {
    drawn.add(random.pickWeighted(candidates.map((id, rank) => ({ id, weight: 1 / (rank + 1) }))).id);
  }
  return candidates.filter((id) => drawn.has(id));
}

/** Common price endings: 4.00, 4.50 or 3.99. */
function drawPrice(random: Random): number {
  const drawn = logNormal(random, MEDIAN_PRICE_MINOR, PRICE_SPREAD);
  const wholes = Math.max(1, Math.round(drawn / 100));
  const price = wholes * 100 + random.pick([0, 50, -1]);
  return Math.min(Math.max(price, PRICE_RANGE_MINOR.from), PRICE_RANGE_MINOR.to);
}

/** Most values are near the median, a few far above; Box-Muller transform. */
function logNormal(random: Random, median: number, spread: number): number {
  const radius = Math.sqrt(-2 * Math.log(1 - random.next()));
  return median * Math.exp(spread * radius * Math.cos(2 * Math.PI * random.next()));
}
