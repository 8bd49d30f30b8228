import type { ServerContext } from "@modelcontextprotocol/server";

/** Tells whoever waits how far it is; the number grows each time. */
type Tell = (progress: number, message: string) => Promise<void>;

/** What a call of a tool may want to know of its request beside the arguments. */
export interface Call {
  /** Aborts when nobody waits for it any more. */
  signal: AbortSignal;
  /** null: they did not ask to be told. */
  tell: Tell | null;
}

const TELL_EVERY_MS = 200;

export function toCall({ mcpReq }: Pick<ServerContext, "mcpReq">): Call {
  const progressToken = mcpReq._meta?.progressToken;
  const { signal } = mcpReq;
  if (progressToken === undefined) return { signal, tell: null };
  let toldAt = Number.NEGATIVE_INFINITY;
  return {
    signal,
    async tell(progress, message) {
      if (performance.now() - toldAt < TELL_EVERY_MS) return;
      toldAt = performance.now();
      const params = { progressToken, progress, message };
      await mcpReq.notify({ method: "notifications/progress", params });
    },
  };
}
