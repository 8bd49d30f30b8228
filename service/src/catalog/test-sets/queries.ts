import type { TestCaseInput } from "@stoa/contract";
import type { Queries, Tx } from "../../platform/db/database.ts";

/** A test set without its cases, which are large. */
export interface TestSetSummary {
  id: string;
  productId: string;
  version: string;
  sha256: string;
  salt: Buffer;
  visibleCases: number;
  hiddenCases: number;
  /** With an assertion that a judge model decides. */
  judgedCases: number;
  createdAt: Date;
}

export interface TestSetRow extends TestSetSummary {
  cases: TestCaseInput[];
}

const SUMMARY_COLUMNS = [
  ...(["id", "productId", "version", "sha256", "salt"] as const),
  ...(["visibleCases", "hiddenCases", "judgedCases", "createdAt"] as const),
] as const;

export const findNewest = (db: Queries, productId: string): Promise<TestSetRow | undefined> =>
  db
    .selectFrom("testSets")
    .selectAll()
    .where("productId", "=", productId)
    .orderBy("id", "desc")
    .limit(1)
    .$castTo<TestSetRow>()
    .executeTakeFirst();

export const findById = (db: Queries, id: string): Promise<TestSetRow | undefined> =>
  db.selectFrom("testSets").selectAll().where("id", "=", id).$castTo<TestSetRow>().executeTakeFirst();

export const listSummaries = (db: Queries, ids: string[]): Promise<TestSetSummary[]> =>
  db
    .selectFrom("testSets")
    .select(SUMMARY_COLUMNS)
    .where("id", "in", ids)
    .$castTo<TestSetSummary>()
    .execute();

/** Of equal cases of the same product. */
export async function findSalt(db: Queries, productId: string, sha256: string): Promise<Buffer | undefined> {
  const row = await db
    .selectFrom("testSets")
    .select("salt")
    .where("productId", "=", productId)
    .where("sha256", "=", sha256)
    .limit(1)
    .executeTakeFirst();
  return row?.salt;
}

export const insertTestSet = (tx: Tx, { cases, ...row }: TestSetRow) =>
  tx
    .insertInto("testSets")
    .values({ ...row, cases: JSON.stringify(cases) })
    .execute();
