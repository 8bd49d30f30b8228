import { Readable } from "node:stream";
import type { Context } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import { toDecimal } from "../../core/money/amount.ts";
import { slugOf } from "../../core/slug.ts";
import { FileResponse } from "../../platform/http/route.ts";
import { declaredOf } from "../products/content.ts";
import { toJsonLine } from "./json-lines.ts";
import { toMarkdown } from "./markdown.ts";
import { type ExportRow, listToExport } from "./queries.ts";
import { toZip } from "./zip.ts";

/** So few at once that even the longest contents are some megabytes. */
const ROWS_AT_ONCE = 20;

/** Under the names and in the order in which a product is created; what nobody said is left out. */
export async function toExported(row: ExportRow) {
  const { priceMinor, lang, category, commissionBasisPoints, variables: _, content, ...rest } = row;
  const declared = await declaredOf(row);
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
    preview: rest.preview,
    version: rest.version,
    changelog: rest.changelog,
    contentFormat: rest.contentFormat,
    ...(declared && { variables: declared }),
    content,
  };
}

type Exported = Awaited<ReturnType<typeof toExported>>;

/**
 * All of an author's products, a few at a time: whoever reads slowly holds no connection and no memory. Each is whole;
 * the file is no picture of one moment.
 */
export async function* exported(ctx: Context, authorId: string): AsyncGenerator<Exported> {
  let after: string | null = null;
  for (;;) {
    const rows: ExportRow[] = await listToExport(ctx.db, authorId, { after, limit: ROWS_AT_ONCE });
    for (const row of rows) yield await toExported(row);
    if (rows.length < ROWS_AT_ONCE) return;
    after = rows.at(-1)!.id;
  }
}

const ID_END = -8;

/** The end of the id tells two products of one title apart. */
export async function* exportedFiles(ctx: Context, authorId: string) {
  for await (const product of exported(ctx, authorId)) {
    const name = `${slugOf(product.title)}-${product.id.slice(ID_END)}.md`;
    yield { name, text: await toMarkdown(product) };
  }
}

async function* lines(ctx: Context, authorId: string) {
  for await (const product of exported(ctx, authorId)) yield toJsonLine(product);
}

export const exportLines = (ctx: Context, authorId: string): Readable =>
  Readable.from(lines(ctx, authorId), { objectMode: false });

export function exportProducts(ctx: Context, authorId: string, format: "jsonl" | "markdown"): FileResponse {
  return format === "jsonl"
    ? new FileResponse({
        name: "products.jsonl",
        type: "application/jsonl; charset=utf-8",
        bytes: exportLines(ctx, authorId),
      })
    : new FileResponse({
        name: "products.zip",
        type: "application/zip",
        bytes: toZip(exportedFiles(ctx, authorId), ctx.now()),
      });
}
