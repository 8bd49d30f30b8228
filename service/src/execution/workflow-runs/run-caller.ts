import type { Member } from "../../core/context.ts";

/** Whoever asked for a run, when a worker asks in their name what they may run: as much as any key of theirs, and no more. */
export const runCaller = (userId: string): Member => ({
  kind: "key",
  keyId: "",
  permissions: new Set(["ai:execute"]),
  userId,
  role: "user",
  plan: "free",
  quota: null,
});
