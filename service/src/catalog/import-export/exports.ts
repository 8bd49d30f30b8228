import { Readable } from "node:stream";
import type { Context } from "../../core/context.ts";
import { toId, toUuids } from "../../core/ids.ts";
import { toDecimal } from "../../core/money/amount.ts";
import { lastOf } from "../../core/required.ts";
import { slugOf } from "../../core/slug.ts";
import { FileResponse } from "../../platform/http/route.ts";
import { declaredVariables } from "../products/content.ts";
import { type StoredSample, toSample } from "../products/samples.ts";
import { toJsonLine } from "./json-lines.ts";
import { toMarkdown } from "./markdown.ts";
import { toZip } from "./product-zip.ts";
import { type ExportRow, listExportRows } from "./queries.ts";

/** Small enough that the longest contents together are some megabytes. */
const BATCH_SIZE = 20;

/** Field names and their order are those of POST /products. Undeclared fields are omitted. */
export async function toExportRecord(row: ExportRow) {
  const { priceMinor, lang, category, commissionBasisPoints, variables: _, content, ...rest } = row;
  const declared = await declaredVariables(row);
  return {
    id: toId("prod", row.id),
    status: rest.status,
    title: rest.title,
    description: rest.description,
    ...(lang !== null && { lang }),
    type: rest.type,
    ...(category !== null && { category }),
    price: toDecimal(priceMinor, rest.currency),
    currency: rest.currency,
    ...(commissionBasisPoints !== null && { commissionBasisPoints }),
    tags: rest.tags,
    compatibility: rest.compatibility,
    models: rest.models,
    requirements: rest.requirements,
    features: rest.features,
    ...(rest.license !== null && { license: rest.license }),
    ...(rest.samples.length > 0 && { samples: rest.samples.map(toExportedSample) }),
    preview: rest.preview,
    version: rest.version,
    changelog: rest.changelog,
    contentFormat: rest.contentFormat,
    ...(declared && { variables: declared }),
    content,
  };
}

/** The service sets the time. */
function toExportedSample(stored: StoredSample) {
  const { createdAt: _createdAt, receipt: _receipt, ...sample } = toSample(stored);
  return sample;
}

type ExportRecord = Awaited<ReturnType<typeof toExportRecord>>;

interface ExportScope {
  authorId: string;
  /** Absent: all. */
  ids?: string[];
}

/**
 * Reads an author's products in batches, so that a slow reader holds no connection and little memory. Each
 * product is consistent; the file is not a snapshot.
 */
export async function* iterateExportRecords(ctx: Context, scope: ExportScope): AsyncGenerator<ExportRecord> {
  let after: string | null = null;
  for (;;) {
    const rows: ExportRow[] = await listExportRows(ctx.db, { ...scope, after, limit: BATCH_SIZE });
    for (const row of rows) yield await toExportRecord(row);
    if (rows.length < BATCH_SIZE) return;
    after = lastOf(rows).id;
  }
}

const ID_END = -8;

/** The file name ends with the end of the id, which distinguishes two products with one title. */
export async function* iterateMarkdownFiles(ctx: Context, scope: ExportScope) {
  for await (const product of iterateExportRecords(ctx, scope)) {
    const name = `${slugOf(product.title)}-${product.id.slice(ID_END)}.md`;
    yield { name, text: await toMarkdown(product) };
  }
}

async function* iterateJsonLines(ctx: Context, scope: ExportScope) {
  for await (const product of iterateExportRecords(ctx, scope)) yield toJsonLine(product);
}

export const exportJsonLines = (ctx: Context, scope: ExportScope): Readable =>
  Readable.from(iterateJsonLines(ctx, scope), { objectMode: false });

interface ExportQuery {
  format: "jsonl" | "markdown";
  /** Separated by commas. */
  productIds?: string | undefined;
}

export function exportProducts(
  ctx: Context,
  authorId: string,
  { format, productIds }: ExportQuery,
): FileResponse {
  const scope = { authorId, ...(productIds !== undefined && { ids: toUuids("prod", productIds) }) };
  return format === "jsonl"
    ? new FileResponse({
        name: "products.jsonl",
        type: "application/jsonl; charset=utf-8",
        bytes: exportJsonLines(ctx, scope),
      })
    : new FileResponse({
        name: "products.zip",
        type: "application/zip",
        bytes: toZip(iterateMarkdownFiles(ctx, scope), ctx.now()),
      });
}
