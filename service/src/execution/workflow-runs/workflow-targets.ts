import type { Member } from "../../core/context.ts";
import type { Workflow } from "../../formats/workflow-definition/workflow-schema.ts";
import { isRepeatable, type RunProduct, TargetMemory, toRunProduct } from "../prompt-runs/run-targets.ts";
import type { SealedKey } from "../provider-keys/provider-keys.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** What workflow runs of this process last read of products and keys. */
    workflowTargets: WorkflowTargets;
  }
}

/** A workflow that runs no other product, and the keys that it needs, as one account reads them. */
export interface WorkflowTarget {
  product: RunProduct;
  workflow: Workflow;
  /** By provider. */
  keys: ReadonlyMap<string, SealedKey>;
}

interface TargetRequest {
  workflowId: string;
  apiKeys: Readonly<Record<string, string>>;
}

/**
 * Remembers the targets of the last workflow runs, so that a repeated run reads nothing before its first statement. That statement
 * compares the target with the database and inserts nothing if it has changed.
 */
export class WorkflowTargets {
  readonly #memory = new TargetMemory<WorkflowTarget>();

  find(caller: Pick<Member, "userId">, request: TargetRequest): WorkflowTarget | undefined {
    return this.#memory.find(nameOf(caller, request));
  }

  /** Not before the first run of a purchase, which must be recorded. */
  remember(
    caller: Pick<Member, "userId">,
    request: TargetRequest,
    { product, workflow, keys }: WorkflowTarget,
  ): void {
    if (!isRepeatable(product) || workflow.steps.some(runsProduct)) return;
    const target = { product: toRunProduct(product), workflow, keys };
    this.#memory.remember(nameOf(caller, request), target, product.content.length);
  }

  forget(caller: Pick<Member, "userId">, request: TargetRequest): void {
    this.#memory.forget(nameOf(caller, request));
  }
}

/** The right to run another product may change. */
const runsProduct = (step: Workflow["steps"][number]): boolean =>
  (step.type === "map" ? step.do : step).type === "product";

const nameOf = ({ userId }: Pick<Member, "userId">, { workflowId, apiKeys }: TargetRequest) =>
  JSON.stringify([userId, workflowId, Object.entries(apiKeys).toSorted()]);
