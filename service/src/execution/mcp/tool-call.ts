import type { ServerContext } from "@modelcontextprotocol/server";

/** Tells whoever waits how far it is; the number grows each time. */
type ReportProgress = (progress: number, message: string) => Promise<void>;

/** What a call of a tool may want to know of its request beside the arguments. */
export interface ToolCall {
  /** Aborts when nobody waits for it any more. */
  signal: AbortSignal;
  /** null: they did not ask to be told. */
  reportProgress: ReportProgress | null;
}

const PROGRESS_INTERVAL_MS = 200;

export function toToolCall({ mcpReq }: Pick<ServerContext, "mcpReq">): ToolCall {
  const progressToken = mcpReq._meta?.progressToken;
  const { signal } = mcpReq;
  if (progressToken === undefined) return { signal, reportProgress: null };
  let toldAt = Number.NEGATIVE_INFINITY;
  return {
    signal,
    async reportProgress(progress, message) {
      if (performance.now() - toldAt < PROGRESS_INTERVAL_MS) return;
      toldAt = performance.now();
      const params = { progressToken, progress, message };
      await mcpReq.notify({ method: "notifications/progress", params });
    },
  };
}
