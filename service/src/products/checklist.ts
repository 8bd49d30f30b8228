import { type FieldProblem, fieldError } from "../errors.ts";
import { checkWorkflow, missingProviders } from "../workflows/workflow.ts";
import type { Locked } from "./ownership.ts";

/** Everything that a buyer needs and that is missing. */
function missingForSale(product: Locked): FieldProblem[] {
  const missing: FieldProblem[] = [];
  const need = (ok: boolean, field: string, reason: string) => ok || missing.push({ field, reason });
  need(product.title !== "", "title", "is missing");
  need(product.description !== "", "description", "is missing: say what a buyer gets");
  need(product.category !== null, "category", "is missing");
  need(product.content.trim() !== "", "content", "is empty");
  need(product.compatibility.length > 0, "compatibility", "needs at least one provider");
  return missing;
}

/** A workflow as it stands can be run, and says which keys that takes. */
async function missingInWorkflow({ content, compatibility }: Locked): Promise<FieldProblem[]> {
  const checked = await checkWorkflow(content);
  if ("problems" in checked) return checked.problems;
  return missingProviders(checked.workflow, compatibility).map((id) => ({
    field: "compatibility",
    reason: `lacks ${id}, which a step of the workflow uses`,
  }));
}

export async function mustBeComplete(product: Locked): Promise<void> {
  const missing = missingForSale(product);
  if (product.type === "WORKFLOW") missing.push(...(await missingInWorkflow(product)));
  if (missing.length > 0) throw fieldError("VALIDATION_ERROR", missing);
}

/** What is on sale, or waits for moderators, may not lose what the checklist asks for. */
export async function mustStayComplete(product: Locked): Promise<void> {
  if (product.status === "published" || product.status === "pending_review") await mustBeComplete(product);
}
