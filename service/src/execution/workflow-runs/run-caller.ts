import type { Member } from "../../core/context.ts";

/** The owner of a run, in whose name workers check what its steps may use. The permissions are those of an API key. */
export const runCaller = (userId: string): Member => ({
  kind: "key",
  keyId: "",
  permissions: new Set(["ai:execute"]),
  userId,
  role: "user",
  plan: "free",
  quota: null,
});
