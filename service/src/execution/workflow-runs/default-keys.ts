import type { Context, Member } from "../../core/context.ts";
import { Workflow } from "../../formats/workflow-definition/workflow-schema.ts";
import { isSandboxDefault, listNewestKeys } from "../prompt-runs/default-key.ts";
import { listRequiredProviders } from "./requirements.ts";

const SANDBOX = { sandbox: "sandbox" };

/**
 * The keys of a run that names none: the caller's newest valid one of each provider, and in the test environment the sandbox
 * for what is still needed.
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
  // The own ones first: a prompt that is called takes the first that it runs on.
  return {
    ...own,
    ...SANDBOX,
    ...Object.fromEntries([...needed].flatMap((name) => (own[name] ? [] : [[name, "sandbox"]]))),
  };
}
