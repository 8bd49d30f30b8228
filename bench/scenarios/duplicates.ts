import { seededRandom } from "@stoa/service/backoffice/demo/seeded-random.ts";
import {
  findLookAlikes,
  findNearDuplicates,
  fingerprintProduct,
} from "@stoa/service/catalog/duplicates/duplicates.ts";
import { createFingerprint } from "@stoa/service/catalog/duplicates/minhash.ts";
import { createTextComparison } from "@stoa/service/catalog/duplicates/text-similarity.ts";
import { titleKeys } from "@stoa/service/catalog/duplicates/title-keys.ts";
import type { Context } from "@stoa/service/core/context.ts";
import { createClient } from "@stoa/service/platform/db/database.ts";
import { startEmbedded } from "@stoa/service/platform/db/embedded.ts";
import { copyInto } from "../copy.ts";
import { filledDataFolder } from "../data-folder.ts";
import { LISTINGS, type Options } from "../options.ts";
import { atEnd } from "../processes.ts";
import { quantilesOf } from "../quantile.ts";
import { comparedWithAim, type Report } from "../report.ts";
import { fillProducts, makersOf, withBase } from "../shop.ts";
import { readTexts, type Texts } from "../texts.ts";

/** A new product, which is none of those that are there. */
const NO_ID = "00000000-0000-0000-0000-000000000000";
const COPY = { id: NO_ID, type: "PROMPT", title: "", contentFormat: "text" } as const;
/** Only products that were published are compared. */
const PUBLISHED =
  "select product_id as id, title from listings where status = 'published' order by product_id";
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
    options.listings === LISTINGS ? "duplicates" : `duplicates-${options.listings}`,
    [...makersOf(options), new URL(import.meta.url)],
    (dataDir) => fill(dataDir, options, texts),
  );
  const database = await startEmbedded(dataDir);
  atEnd(() => database.stop());
  return withBase(dataDir, { target: database.connection }, ({ ctx }) => measure(ctx, texts));
}

async function fill(dataDir: string, { prompts, listings }: Options, texts: Texts): Promise<string> {
  await fillProducts(dataDir, prompts, listings);
  const database = await startEmbedded(dataDir);
  const client = createClient({ target: database.connection }, { application_name: "stoa bench" });
  await client.connect();
  try {
    const { rows } = await client.query<{ id: string; title: string }>(PUBLISHED);
    await client.query("create temp table texts (product_id uuid primary key, content text)");
    for (let from = 0; from < rows.length; from += BATCH) await insertBatch(client, texts, rows, from);
    await client.query("vacuum analyze product_fingerprints, product_versions");
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
    const text = textOf(texts, from + at);
    const { bands, signature } = createFingerprint(text);
    const hash = `\\x${signature.toString("hex")}`;
    return { text: [id, text], row: [id, now, bands.map(String), hash, titleKeys(title).map(String)] };
  });
  await copyInto(
    client,
    "product_fingerprints",
    "product_id, created_at, bands, signature, title_keys",
    batch.map(({ row }) => row),
  );
  await writeTexts(
    client,
    batch.map(({ text }) => text),
  );
}

/** The exact comparison reads them. Triggers protect published versions, so they are switched off here. */
async function writeTexts(client: ReturnType<typeof createClient>, batch: string[][]): Promise<void> {
  await copyInto(client, "texts", "product_id, content", batch);
  await client.query("set session_replication_role = replica");
  await client.query(`
    update product_versions v set content = t.content, content_format = 'text'
      from texts t, products p
     where v.product_id = t.product_id and p.id = t.product_id and v.numbers = p.released`);
  await client.query("reset session_replication_role");
  await client.query("truncate texts");
}

/** The same text for the same number. Sentences are shared, as those of templates are. */
function textOf({ shelves }: Texts, number: number): string {
  const random = seededRandom(number + 1);
  const { sentences } = random.pick(shelves);
  return Array.from({ length: SENTENCES }, (_, at) => `${random.pick(sentences)} ${at * number}`).join(" ");
}

async function measure(ctx: Context, texts: Texts): Promise<Report> {
  const { rows } = await ctx.pool.query<{ id: string; title: string }>(PUBLISHED);
  const random = seededRandom(7);
  const byText: number[] = [];
  const byTitle: number[] = [];
  let near = 0;
  let found = 0;
  let reported = 0;
  for (let turn = 0; turn < ASKED; turn++) {
    const number = random.integer(0, rows.length - 1);
    const original = textOf(texts, number);
    const copy = withChangedWords(original, random.integer(20, 60));
    const isNear = createTextComparison(original)(copy) >= NEAR;
    const begun = performance.now();
    const [duplicates = []] = await findNearDuplicates(ctx.db, [
      fingerprintProduct({ ...COPY, content: copy }),
    ]);
    byText.push(performance.now() - begun);
    reported += duplicates.length;
    if (!isNear) continue;
    near++;
    if (duplicates.some(({ product }) => product.id === rows[number]?.id)) found++;
  }
  for (let turn = 0; turn < ASKED; turn++) {
    const title = `${random.pick(rows).title}s`;
    const begun = performance.now();
    await findLookAlikes(ctx.db, [{ title, authorId: NO_ID, purchases: 0 }]);
    byTitle.push(performance.now() - begun);
  }
  return reportOf({ byText, byTitle, recall: found / near, near, reported, count: rows.length });
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
  /** Products that were found for all texts together. */
  reported: number;
  /** Of products. */
  count: number;
}

function reportOf({ byText, byTitle, recall, near, reported, count }: Measured): Report {
  const row = (what: string, times: number[]) => {
    const { p50, p95, p99 } = quantilesOf(times);
    const [, ...aim] = comparedWithAim("", `p99 ≤ ${AIM_MS} ms`, p99 <= AIM_MS);
    return [what, ...[p50, p95, p99].map((time) => time.toFixed(1)), ...aim];
  };
  const [, ...recallAim] = comparedWithAim("", `≥ ${AIM_RECALL}`, recall >= AIM_RECALL);
  return {
    columns: [
      `among ${count === LISTINGS ? "a million" : count.toLocaleString("en-US")} products`,
      "p50 ms",
      "p95 ms",
      "p99 ms",
      "aim",
      "met",
    ],
    rows: [
      row("products with nearly the same text", byText),
      row("better-selling products with a similar title", byTitle),
      [`recall of ${near} copies with Jaccard index ≥ ${NEAR}`, recall.toFixed(4), "", "", ...recallAim],
    ],
    notes: [
      `${ASKED} of each, one at a time: fingerprint, candidates, and the exact comparison of the 20 most similar ones with their texts. A text was found ${(reported / ASKED).toFixed(2)} times on average.`,
    ],
  };
}
