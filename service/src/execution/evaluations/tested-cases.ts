import type { TestCaseInput } from "@stoa/contract";
import { findRunnableVersion } from "../../catalog/products/product-lookup.ts";
import type { StoredTestSet } from "../../catalog/test-sets/test-sets.ts";
import type { Queries } from "../../platform/db/database.ts";
import { toRunInput } from "./evaluation-plan.ts";
import type { ColumnRow, EvaluationRow } from "./queries.ts";

/** The version that an evaluation tests; undefined: it is gone. */
export async function findTestedVersion(
  db: Queries,
  { productId, version: pinned }: EvaluationRow,
  columns: readonly Pick<ColumnRow, "provider">[],
) {
  const found = await findRunnableVersion(db, productId, { major: null, pinned });
  return found && { ...found, type: columns[0]?.provider === null ? "WORKFLOW" : "PROMPT" };
}

/** The inputs of the cases as their runs got them. */
export async function listRunInputs(
  db: Queries,
  evaluation: EvaluationRow,
  { cases }: StoredTestSet,
  columns: readonly Pick<ColumnRow, "provider">[],
): Promise<Pick<TestCaseInput, "input">[]> {
  const version = await findTestedVersion(db, evaluation, columns);
  return cases.map(({ input }) => ({ input: version ? toRunInput(version, input) : input }));
}
