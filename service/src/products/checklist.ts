import { type FieldProblem, fieldError } from "../errors.ts";
import type { Locked } from "./ownership.ts";

/** Everything that a buyer needs and that is missing. */
function missingForSale(product: Locked): FieldProblem[] {
  const missing: FieldProblem[] = [];
  const need = (ok: boolean, field: string, reason: string) => ok || missing.push({ field, reason });
  need(product.type !== "WORKFLOW", "type", "workflows can be drafted but not sold yet");
  need(product.title !== "", "title", "is missing");
  need(product.description !== "", "description", "is missing: say what a buyer gets");
  need(product.category !== null, "category", "is missing");
  need(product.content.trim() !== "", "content", "is empty");
  need(product.compatibility.length > 0, "compatibility", "needs at least one provider");
  return missing;
}

export function mustBeComplete(product: Locked): void {
  const missing = missingForSale(product);
  if (missing.length > 0) throw fieldError("VALIDATION_ERROR", missing);
}

/** What is on sale, or waits for moderators, may not lose what the checklist asks for. */
export function mustStayComplete(product: Locked): void {
  if (product.status === "published" || product.status === "pending_review") mustBeComplete(product);
}
