import type { TestCaseInput } from "@stoa/contract";
import type { Queries, Tx } from "../../platform/db/database.ts";

export interface TestSetRow {
  id: string;
  productId: string;
  version: string;
  sha256: string;
  cases: TestCaseInput[];
  createdAt: Date;
}

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

export const insertTestSet = (tx: Tx, { cases, ...row }: TestSetRow) =>
  tx
    .insertInto("testSets")
    .values({ ...row, cases: JSON.stringify(cases) })
    .execute();
