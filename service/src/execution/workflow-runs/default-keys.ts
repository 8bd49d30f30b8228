import type { Context, Member } from "../../core/context.ts";
import { Workflow } from "../../formats/workflow-definition/workflow-schema.ts";
import { isSandboxDefault, listNewestKeys } from "../prompt-runs/default-key.ts";
import { listRequiredProviders } from "./requirements.ts";

const SANDBOX = { sandbox: "sandbox" };

/**
 * The keys of a run whose request names none: the caller's newest valid key of each provider. In the test environment the sandbox
 * fills the gaps.
 */
export async function findDefaultKeys(
  ctx: Context,
  caller: Member,
  definition: string,
): Promise<Record<string, string>> {
  const own = await listNewestKeys(ctx, caller);
  if (!isSandboxDefault(ctx)) return own;
  const workflow = Workflow.parse(JSON.parse(definition));
  const needed = await listRequiredProviders(ctx, caller, workflow, { ...own, ...SANDBOX });
  // Own keys come first: a called prompt uses the first key that fits.
  return {
    ...own,
    ...SANDBOX,
    ...Object.fromEntries([...needed].flatMap((name) => (own[name] ? [] : [[name, "sandbox"]]))),
  };
}
