import { seededRandom } from "@stoa/service/backoffice/demo/seeded-random.ts";
import { createFingerprint, estimateSimilarity } from "@stoa/service/catalog/duplicates/minhash.ts";
import { listByBands, listByTitleKeys } from "@stoa/service/catalog/duplicates/queries.ts";
import { createTextComparison } from "@stoa/service/catalog/duplicates/text-similarity.ts";
import { isLookAlike, lookAlikeKeys, titleKeys } from "@stoa/service/catalog/duplicates/title-keys.ts";
import type { Context } from "@stoa/service/core/context.ts";
import { createClient } from "@stoa/service/platform/db/database.ts";
import { startEmbedded } from "@stoa/service/platform/db/embedded.ts";
import { copyInto } from "../copy.ts";
import { filledDataFolder } from "../data-folder.ts";
import type { Options } from "../options.ts";
import { atEnd } from "../processes.ts";
import { quantilesOf } from "../quantile.ts";
import { comparedWithAim, type Report } from "../report.ts";
import { fillProducts, makersOf, withBase } from "../shop.ts";
import { readTexts, type Texts } from "../texts.ts";

const PRODUCTS = 1_000_000;
const ASKED = 1_000;
const BATCH = 10_000;
const SENTENCES = 8;
const NEAR = 0.8;
const AIM_MS = 50;
const AIM_RECALL = 0.99;

/** Copies of texts, and titles that look like others, among a million products. */
export async function measureDuplicates(options: Options): Promise<Report> {
  const texts = await readTexts(options.prompts, ["writing"]);
  const { dataDir } = await filledDataFolder(
    options,
    "duplicates",
    [...makersOf(options), new URL(import.meta.url)],
    (dataDir) => fill(dataDir, options, texts),
  );
  const database = await startEmbedded(dataDir);
  atEnd(() => database.stop());
  return withBase(dataDir, { target: database.connection }, ({ ctx }) => measure(ctx, texts));
}

async function fill(dataDir: string, { prompts }: Options, texts: Texts): Promise<string> {
  await fillProducts(dataDir, prompts, PRODUCTS);
  const database = await startEmbedded(dataDir);
  const client = createClient({ target: database.connection }, { application_name: "stoa bench" });
  await client.connect();
  try {
    const { rows } = await client.query<{ id: string; title: string }>(
      "select product_id as id, title from listings order by product_id",
    );
    for (let from = 0; from < rows.length; from += BATCH) await insertBatch(client, texts, rows, from);
    await client.query("vacuum analyze product_fingerprints");
  } finally {
    await client.end();
    await database.stop();
  }
  return "";
}

async function insertBatch(
  client: ReturnType<typeof createClient>,
  texts: Texts,
  rows: { id: string; title: string }[],
  from: number,
): Promise<void> {
  const now = new Date();
  const batch = rows.slice(from, from + BATCH).map(({ id, title }, at) => {
    const { bands, signature } = createFingerprint(textOf(texts, from + at));
    return [id, now, bands.map(String), `\\x${signature.toString("hex")}`, titleKeys(title).map(String)];
  });
  await copyInto(
    client,
    "product_fingerprints",
    "product_id, created_at, bands, signature, title_keys",
    batch,
  );
}

/** The same text for the same number. Sentences are shared, as those of templates are. */
function textOf({ shelves }: Texts, number: number): string {
  const random = seededRandom(number + 1);
  const { sentences } = random.pick(shelves);
  return Array.from({ length: SENTENCES }, (_, at) => `${random.pick(sentences)} ${at * number}`).join(" ");
}

async function measure(ctx: Context, texts: Texts): Promise<Report> {
  const { rows } = await ctx.pool.query<{ id: string; title: string }>(
    "select product_id as id, title from listings order by product_id",
  );
  const random = seededRandom(7);
  const byText: number[] = [];
  const byTitle: number[] = [];
  let near = 0;
  let found = 0;
  let candidates = 0;
  for (let turn = 0; turn < ASKED; turn++) {
    const number = random.integer(0, rows.length - 1);
    const original = textOf(texts, number);
    const copy = withChangedWords(original, random.integer(20, 60));
    const isNear = createTextComparison(original)(copy) >= NEAR;
    const begun = performance.now();
    const { bands, signature } = createFingerprint(copy);
    const matches = await listByBands(ctx.db, bands, { except: rows[0]?.id ?? "", limit: 1_000 });
    const likely = matches.filter((match) => estimateSimilarity(signature, match.signature) >= 0.6);
    byText.push(performance.now() - begun);
    candidates += matches.length;
    if (!isNear) continue;
    near++;
    if (likely.some(({ productId }) => productId === rows[number]?.id)) found++;
  }
  for (let turn = 0; turn < ASKED; turn++) {
    const title = `${random.pick(rows).title}s`;
    const begun = performance.now();
    const options = { authorId: rows[0]?.id ?? "", purchases: 0, limit: 500 };
    const likely = await listByTitleKeys(ctx.db, lookAlikeKeys(title), options);
    likely.filter((row) => isLookAlike(title, row.title));
    byTitle.push(performance.now() - begun);
  }
  return reportOf({ byText, byTitle, recall: found / near, near, candidates });
}

const withChangedWords = (text: string, nth: number): string =>
  text
    .split(" ")
    .map((word, at) => (at % nth === nth - 1 ? "other" : word))
    .join(" ");

interface Measured {
  byText: number[];
  byTitle: number[];
  recall: number;
  near: number;
  candidates: number;
}

function reportOf({ byText, byTitle, recall, near, candidates }: Measured): Report {
  const row = (what: string, times: number[]) => {
    const { p50, p95, p99 } = quantilesOf(times);
    const [, ...aim] = comparedWithAim("", `p99 ≤ ${AIM_MS} ms`, p99 <= AIM_MS);
    return [what, ...[p50, p95, p99].map((time) => time.toFixed(1)), ...aim];
  };
  const [, ...recallAim] = comparedWithAim("", `≥ ${AIM_RECALL}`, recall >= AIM_RECALL);
  return {
    columns: ["among a million products", "p50 ms", "p95 ms", "p99 ms", "aim", "met"],
    rows: [
      row("products with nearly the same text", byText),
      row("better-selling products with a similar title", byTitle),
      [`recall of ${near} copies with Jaccard index ≥ ${NEAR}`, recall.toFixed(4), "", "", ...recallAim],
    ],
    notes: [
      `${ASKED} of each, one at a time, fingerprint included. A text had ${(candidates / ASKED).toFixed(1)} candidates on average; the exact comparison of at most 20 of them follows.`,
    ],
  };
}
