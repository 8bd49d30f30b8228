import { Readable } from "node:stream";
import type { TestCaseInput, TestSetFormat, TestSetImportResult } from "@stoa/contract";
import type { TestCase } from "@stoa/evaluation";
import type { Context, Member } from "../../core/context.ts";
import { ApiError, fieldError } from "../../core/errors.ts";
import { slugOf } from "../../core/slug.ts";
import { FileResponse } from "../../platform/http/route.ts";
import { findVisibleProduct, isAuthorOrAdmin } from "../products/detail.ts";
import { checkSchema, findInputProblems } from "./case-problems.ts";
import { findOwnProduct, findTestSet, storeTestSet } from "./test-sets.ts";

interface TestFile {
  format: TestSetFormat;
  content: string;
  dryRun: boolean;
}

const FILES: Record<TestSetFormat, { extension: string; type: string }> = {
  "promptfoo-yaml": { extension: "yaml", type: "application/yaml" },
  "promptfoo-csv": { extension: "csv", type: "text/csv" },
  "agent-skills": { extension: "json", type: "application/json" },
};

/** Stores the cases that can be read, and returns what of the file was refused. */
export async function importTestSetFile(
  ctx: Context,
  caller: Member,
  productId: string,
  { format, content, dryRun }: TestFile,
): Promise<TestSetImportResult> {
  const product = await findOwnProduct(ctx, caller, productId);
  const { importTestSet } = await import("@stoa/evaluation");
  const read = importTestSet(format, content, { checkSchema });
  const problems = [...read.problems];
  const cases: TestCaseInput[] = [];
  for (const one of read.cases) {
    const refused = findInputProblems(product, [one]);
    for (const { field, reason } of refused)
      problems.push({ line: null, path: field.replace("cases[0]", `“${one.title}”`), reason });
    if (refused.length === 0) cases.push(one);
  }
  if (cases.length === 0)
    throw fieldError("VALIDATION_ERROR", [
      { field: "content", reason: "has no case that can be imported" },
      ...problems.map(({ line, path, reason }) => ({
        field: "content",
        reason: `${path}: ${reason}`,
        ...(line !== null && { line }),
      })),
    ]);
  if (!dryRun) await storeTestSet(ctx, product.id, cases);
  return { dryRun, imported: cases.length, problems };
}

export async function exportTestSetFile(
  ctx: Context,
  caller: Member,
  productId: string,
  format: TestSetFormat,
): Promise<FileResponse> {
  const product = await findVisibleProduct(ctx, caller, productId);
  if (!isAuthorOrAdmin(product, caller))
    throw new ApiError("UNAUTHORIZED", "Only its author may do this.", { required: "author" });
  const cases = (await findTestSet(ctx.db, product.id))?.cases ?? [];
  const { extension, type } = FILES[format];
  return new FileResponse({
    name: `${slugOf(product.title)}-tests.${extension}`,
    type,
    bytes: Readable.from([await writeFile(format, cases)]),
  });
}

/** Throws VALIDATION_ERROR with each place that the format cannot hold. */
async function writeFile(format: TestSetFormat, cases: TestCaseInput[]): Promise<string> {
  const { exportTestSet, TestSetExportError } = await import("@stoa/evaluation");
  try {
    return exportTestSet(format, cases as TestCase[]);
  } catch (error) {
    if (!(error instanceof TestSetExportError)) throw error;
    throw fieldError(
      "VALIDATION_ERROR",
      error.problems.map(({ path, reason }) => ({
        field: "format",
        reason: `cannot hold cases${path}: ${reason}`,
      })),
    );
  }
}
