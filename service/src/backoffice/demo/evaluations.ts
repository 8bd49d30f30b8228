import { readFile } from "node:fs/promises";
import { api } from "@stoa/contract";
import { findTestSet, replaceTestSet } from "../../catalog/test-sets/test-sets.ts";
import type { Context, Member } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import { createEvaluation, listEvaluations } from "../../execution/evaluations/evaluations.ts";
import { listDemoProducts } from "./queries.ts";

/** It returns the rendered prompt, so that the same tests pass everywhere. Score cards call it a practice provider. */
const ECHO = { apiKeyId: "sandbox", model: "sandbox-echo" };
const REPEATS = 2;
const FIRST = { page: 1, limit: 1 };

interface DemoTestSet {
  /** Of the product. */
  title: string;
  cases: object[];
}

/**
 * Stores test sets of some demo products and starts their evaluations, which the service's workers run. Continues after a crash.
 * Returns how many products have an evaluation.
 */
export async function startDemoEvaluations(
  ctx: Context,
  toCaller: (userId: string) => Member,
): Promise<number> {
  if (!ctx.config.sandbox) return 0;
  const products = new Map((await listDemoProducts(ctx.db)).map((product) => [product.title, product]));
  let evaluated = 0;
  for (const { title, cases } of await readTestSets()) {
    const product = products.get(title);
    if (!product) continue;
    const seller = toCaller(product.authorId);
    const productId = toId("prod", product.id);
    if (!(await findTestSet(ctx.db, product.id))) {
      const request = api.products.testSet.replace.request.body.parse({ cases });
      await replaceTestSet(ctx, seller, productId, request.cases);
    }
    const { total } = await listEvaluations(ctx, seller, productId, FIRST);
    if (total === 0)
      await createEvaluation(ctx, seller, productId, { models: [ECHO], repeats: REPEATS, maxCost: 1 });
    evaluated++;
  }
  return evaluated;
}

const readTestSets = async (): Promise<DemoTestSet[]> =>
  JSON.parse(await readFile(new URL("./test-sets.json", import.meta.url), "utf8"));
