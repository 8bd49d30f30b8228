import { createHmac, randomBytes } from "node:crypto";
import type { TestCaseInput, TestSet } from "@stoa/contract";
import type { TestCase } from "@stoa/evaluation";
import { splitAssertions } from "@stoa/evaluation/split-assertions";
import { canonicalJson } from "../../core/canonical-json.ts";
import type { Caller, Context, Member } from "../../core/context.ts";
import { digestOf } from "../../core/digest.ts";
import { ApiError, fieldError } from "../../core/errors.ts";
import type { Queries } from "../../platform/db/database.ts";
import { findVisibleProduct, isAuthorOrAdmin } from "../products/detail.ts";
import { lockProductForChange } from "../products/ownership.ts";
import { findCaseProblems } from "./case-problems.ts";
import {
  findById,
  findNewest,
  findSalt,
  insertTestSet,
  listSummaries,
  type TestSetRow,
  type TestSetSummary,
} from "./queries.ts";

export type StoredTestSet = TestSetRow;
export type { TestSetSummary };

const SALT_BYTES = 32;

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
    const salt = (await findSalt(tx, productId, sha256)) ?? randomBytes(SALT_BYTES);
    const row = {
      ...{ id: ctx.newId(), productId, version, sha256, salt, cases, ...countCases(cases) },
      createdAt: ctx.now(),
    };
    await insertTestSet(tx, row);
    return row;
  });
}

const hashCases = (cases: TestCaseInput[]): string => digestOf(canonicalJson(cases)).toString("hex");

function countCases(cases: TestCaseInput[]) {
  const hiddenCases = cases.filter(({ isHidden }) => isHidden).length;
  const judgedCases = cases.filter((one) => splitAssertions(one as TestCase).judged.length > 0).length;
  return { visibleCases: cases.length - hiddenCases, hiddenCases, judgedCases };
}

/** A hash that everybody may see: the salt is secret as long as a case is hidden, so that nobody can test a guess of it. */
export const saltedHash = ({ salt }: Pick<TestSetSummary, "salt">, text: string): string =>
  createHmac("sha256", salt).update(text).digest("hex");

/** The name of a test set's cases: equal cases of a product have equal hashes. */
export const publicHashOf = (testSet: Pick<TestSetSummary, "salt" | "sha256">): string =>
  saltedHash(testSet, testSet.sha256);

/** The newest; undefined: the product has none, or its author removed it. */
export async function findTestSet(db: Queries, productId: string): Promise<TestSetRow | undefined> {
  const newest = await findNewest(db, productId);
  return newest && newest.cases.length > 0 ? newest : undefined;
}

/** That of an evaluation, which may have been replaced since. */
export const findStoredTestSet = (db: Queries, id: string): Promise<TestSetRow | undefined> =>
  findById(db, id);

/** Those of evaluations, without their cases. */
export async function findTestSetSummaries(
  db: Queries,
  ids: readonly string[],
): Promise<Map<string, TestSetSummary>> {
  const rows = ids.length === 0 ? [] : await listSummaries(db, [...new Set(ids)]);
  return new Map(rows.map((row) => [row.id, row]));
}

function toTestSet(row: TestSetRow | undefined, { showsHidden }: { showsHidden: boolean }): TestSet {
  const cases = row?.cases ?? [];
  const isEmpty = !row || cases.length === 0;
  return {
    version: isEmpty ? null : row.version,
    hash: isEmpty ? null : publicHashOf(row),
    visibleCases: row?.visibleCases ?? 0,
    hiddenCases: row?.hiddenCases ?? 0,
    cases: cases.map((one) =>
      one.isHidden && !showsHidden ? { title: one.title, isHidden: true, input: null, assert: null } : one,
    ),
    createdAt: isEmpty ? null : row.createdAt.toISOString(),
  };
}
