import type { FindSampleRun } from "../../catalog/products/samples.ts";
import { isDraftVersion } from "../executions/draft-version.ts";
import { findExecution, findTexts } from "../executions/queries.ts";
import { openTexts } from "../executions/texts.ts";
import { signRun } from "./run-receipt.ts";

export const findSampleRun: FindSampleRun = async (ctx, db, { userId, productId, executionId }) => {
  const run = await findExecution(db, userId, executionId);
  if (run?.status !== "completed" || run.productId !== productId) return null;
  // What an author ran to test a draft is not what buyers get.
  if (isDraftVersion(run.productVersion)) return null;
  const sealed = (await findTexts(db, run.id))?.sealed;
  if (!sealed) return null;
  const { variables, output } = openTexts(ctx, run, sealed);
  const models = await ctx.executionKinds[run.type].listModels(db, run);
  const receipt = await signRun(ctx, db, run);
  return { input: variables, output, models, createdAt: run.createdAt, receipt };
};
