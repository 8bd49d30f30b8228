import { type FieldProblem, fieldError } from "../../core/errors.ts";
import { checkWorkflow, listMissingProviders } from "../../formats/workflow-definition/check-workflow.ts";
import type { Queries } from "../../platform/db/database.ts";
import { unavailableDependencies } from "./dependencies.ts";
import type { LockedProduct } from "./ownership.ts";

function missingForSale(product: LockedProduct): FieldProblem[] {
  const missing: FieldProblem[] = [];
  const need = (ok: boolean, field: string, reason: string) => ok || missing.push({ field, reason });
  need(product.title !== "", "title", "is missing");
  need(product.description !== "", "description", "is missing: say what a buyer gets");
  need(product.category !== null, "category", "is missing");
  need(product.content.trim() !== "", "content", "is empty");
  need(product.compatibility.length > 0, "compatibility", "needs at least one provider");
  return missing;
}

/** A workflow must run and must name its providers. */
async function missingInWorkflow(product: LockedProduct): Promise<FieldProblem[]> {
  const { content, compatibility } = product;
  const checked = await checkWorkflow(content);
  if ("problems" in checked) return checked.problems;
  return listMissingProviders(checked.workflow, compatibility).map((id) => ({
    field: "compatibility",
    reason: `lacks ${id}, which a step of the workflow uses`,
  }));
}

export async function mustBeComplete(db: Queries, product: LockedProduct): Promise<void> {
  const missing = await missingIn(product);
  missing.push(...(await unavailableDependencies(db, product)));
  if (missing.length > 0) throw fieldError("VALIDATION_ERROR", missing);
}

async function missingIn(product: LockedProduct): Promise<FieldProblem[]> {
  const inWorkflow = product.type === "WORKFLOW" ? await missingInWorkflow(product) : [];
  return [...missingForSale(product), ...inWorkflow];
}

/**
 * A published or submitted product cannot lose a field of the checklist. A called product may have been unpublished
 * since; that does not block changes of other fields.
 */
export async function mustStayComplete(
  db: Queries,
  before: LockedProduct,
  after: LockedProduct,
): Promise<void> {
  if (after.status !== "published" && after.status !== "pending_review") return;
  if (before.content !== after.content) return mustBeComplete(db, after);
  const missing = await missingIn(after);
  if (missing.length > 0) throw fieldError("VALIDATION_ERROR", missing);
}
