import type { TestCaseInput, TestSet } from "@stoa/contract";
import { canonicalJson } from "../../core/canonical-json.ts";
import type { Caller, Context, Member } from "../../core/context.ts";
import { digestOf } from "../../core/digest.ts";
import { ApiError, fieldError } from "../../core/errors.ts";
import type { Queries } from "../../platform/db/database.ts";
import { findVisibleProduct, isAuthorOrAdmin } from "../products/detail.ts";
import { lockProductForChange } from "../products/ownership.ts";
import { findCaseProblems } from "./case-problems.ts";
import { findById, findNewest, insertTestSet, type TestSetRow } from "./queries.ts";

export type StoredTestSet = TestSetRow;

/** The author and administrators get all of it, others no more than the titles of hidden cases. */
export async function readTestSet(ctx: Context, caller: Caller, productId: string): Promise<TestSet> {
  const product = await findVisibleProduct(ctx, caller, productId);
  return toTestSet(await findTestSet(ctx.db, product.id), { showsHidden: isAuthorOrAdmin(product, caller) });
}

/** The product of a request that only its author may make. */
export async function findOwnProduct(ctx: Context, caller: Member, productId: string) {
  const product = await findVisibleProduct(ctx, caller, productId);
  if (product.authorId !== caller.userId)
    throw new ApiError("UNAUTHORIZED", "Only its author may do this.", { required: "author" });
  return product;
}

export async function replaceTestSet(
  ctx: Context,
  caller: Member,
  productId: string,
  cases: TestCaseInput[],
): Promise<TestSet> {
  const product = await findOwnProduct(ctx, caller, productId);
  const problems = await findCaseProblems(product, cases);
  if (problems.length > 0) throw fieldError("VALIDATION_ERROR", problems);
  return toTestSet(await storeTestSet(ctx, product.id, cases), { showsHidden: true });
}

/** Equal cases are stored once: a repeated request changes nothing. */
export async function storeTestSet(
  ctx: Context,
  productId: string,
  cases: TestCaseInput[],
): Promise<TestSetRow | undefined> {
  const sha256 = hashCases(cases);
  return ctx.db.transaction().execute(async (tx) => {
    const { version } = await lockProductForChange(tx, productId);
    const newest = await findNewest(tx, productId);
    if (newest?.sha256 === sha256 || (!newest && cases.length === 0)) return newest;
    const row = { id: ctx.newId(), productId, version, sha256, cases, createdAt: ctx.now() };
    await insertTestSet(tx, row);
    return row;
  });
}

const hashCases = (cases: TestCaseInput[]): string => digestOf(canonicalJson(cases)).toString("hex");

/** The newest; undefined: the product has none, or its author removed it. */
export async function findTestSet(db: Queries, productId: string): Promise<TestSetRow | undefined> {
  const newest = await findNewest(db, productId);
  return newest && newest.cases.length > 0 ? newest : undefined;
}

/** That of an evaluation, which may have been replaced since. */
export const findStoredTestSet = (db: Queries, id: string): Promise<TestSetRow | undefined> =>
  findById(db, id);

function toTestSet(row: TestSetRow | undefined, { showsHidden }: { showsHidden: boolean }): TestSet {
  const cases = row?.cases ?? [];
  const hiddenCases = cases.filter(({ isHidden }) => isHidden).length;
  const isEmpty = !row || cases.length === 0;
  return {
    version: isEmpty ? null : row.version,
    sha256: isEmpty ? null : row.sha256,
    visibleCases: cases.length - hiddenCases,
    hiddenCases,
    cases: cases.map((one) =>
      one.isHidden && !showsHidden ? { title: one.title, isHidden: true, input: null, assert: null } : one,
    ),
    createdAt: isEmpty ? null : row.createdAt.toISOString(),
  };
}
