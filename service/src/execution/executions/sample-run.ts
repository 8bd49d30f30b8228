import type { FindSampleRun } from "../../catalog/products/samples.ts";
import { isDraftVersion } from "./draft-version.ts";
import { findExecution, findTexts } from "./queries.ts";
import { openTexts } from "./texts.ts";

export const findSampleRun: FindSampleRun = async (ctx, db, { userId, productId, executionId }) => {
  const run = await findExecution(db, userId, executionId);
  if (run?.status !== "completed" || run.productId !== productId) return null;
  // What an author ran to test a draft is not what buyers get.
  if (isDraftVersion(run.productVersion)) return null;
  const sealed = (await findTexts(db, run.id))?.sealed;
  if (!sealed) return null;
  const { variables, output } = openTexts(ctx, run, sealed);
  const models = await ctx.executionKinds[run.type].listModels(db, run);
  return { input: variables, output, models, createdAt: run.createdAt };
};
