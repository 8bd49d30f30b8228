import type { ServerContext } from "@modelcontextprotocol/server";

/** Sends a progress notification; `progress` must grow with each call. */
type ReportProgress = (progress: number, message: string) => Promise<void>;

/** The parts of a request that a tool needs besides its arguments. */
export interface ToolCall {
  /** Aborts when the client has disconnected or canceled. */
  signal: AbortSignal;
  /** null: the client did not ask for progress. */
  reportProgress: ReportProgress | null;
}

const PROGRESS_INTERVAL_MS = 200;

export function toToolCall({ mcpReq }: Pick<ServerContext, "mcpReq">): ToolCall {
  const progressToken = mcpReq._meta?.progressToken;
  const { signal } = mcpReq;
  if (progressToken === undefined) return { signal, reportProgress: null };
  let reportedAt = Number.NEGATIVE_INFINITY;
  return {
    signal,
    async reportProgress(progress, message) {
      if (performance.now() - reportedAt < PROGRESS_INTERVAL_MS) return;
      reportedAt = performance.now();
      const params = { progressToken, progress, message };
      await mcpReq.notify({ method: "notifications/progress", params });
    },
  };
}
