import type { FastifyReply, FastifyRequest } from "fastify";
import { sql } from "kysely";
import type { Context, Member } from "../../core/context.ts";
import { digestOf } from "../../core/digest.ts";
import type { Queries } from "../../platform/db/database.ts";

/** What a message may say of itself; nobody has judged it yet. */
export interface McpMessage {
  method?: unknown;
  id?: unknown;
  params?: { requestId?: unknown } | undefined;
}

/** Drawn when a client of before 2026-07-28 introduces itself, and sent along by it ever after. Nothing is kept for it. */
export const SESSION_HEADER = "mcp-session-id";
const CHANNEL = "mcp_cancel";

/**
 * The requests that this process answers at the moment, so that they can be given up. Until the revision of 2026-07-28 a client
 * asks for that by a message of its own, which any process may get; since then it hangs up.
 */
export class RequestCancellation {
  readonly #db: Queries;
  readonly #running = new Map<string, AbortController>();

  constructor({ db, notifications }: Pick<Context, "db" | "notifications">) {
    this.#db = db;
    notifications.register({ on: { [CHANNEL]: (name) => this.#running.get(name)?.abort() }, clear() {} });
  }

  /** Passes on what a message gives up. Answers a signal that aborts when the message itself is given up. */
  async track(
    { userId }: Member,
    { headers }: FastifyRequest,
    reply: FastifyReply,
    message: McpMessage | undefined,
  ): Promise<AbortSignal> {
    const running = new AbortController();
    const session = headers[SESSION_HEADER];
    if (session === undefined) return running.signal;
    // A number is its client's alone, and the session tells clients of one person apart.
    const nameOf = (id: unknown) => digestOf(JSON.stringify([userId, session, id])).toString("base64url");
    if (message?.method === "notifications/cancelled") await this.#notify(nameOf(message.params?.requestId));
    if (message?.id === undefined || reply.raw.destroyed) return running.signal;
    const name = nameOf(message.id);
    this.#running.set(name, running);
    reply.raw.once("close", () => this.#running.get(name) === running && this.#running.delete(name));
    return running.signal;
  }

  #notify(name: string) {
    return sql`select pg_notify(${CHANNEL}, ${name})`.execute(this.#db);
  }
}
