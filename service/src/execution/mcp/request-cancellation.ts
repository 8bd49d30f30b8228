import type { FastifyReply, FastifyRequest } from "fastify";
import { sql } from "kysely";
import type { Context, Member } from "../../core/context.ts";
import { digestOf } from "../../core/digest.ts";
import type { Queries } from "../../platform/db/database.ts";

/** Fields of a message that are not validated yet. */
export interface McpMessage {
  method?: unknown;
  id?: unknown;
  params?: { requestId?: unknown } | undefined;
}

/** Sent with `initialize`; clients before revision 2026-07-28 return it with each request. The server stores nothing for it. */
export const SESSION_HEADER = "mcp-session-id";
const CHANNEL = "mcp_cancel";

/**
 * Aborts requests that this process answers. Clients before revision 2026-07-28 cancel by a message, which may reach another
 * process. Later clients disconnect.
 */
export class RequestCancellation {
  readonly #db: Queries;
  readonly #running = new Map<string, AbortController>();

  constructor({ db, notifications }: Pick<Context, "db" | "notifications">) {
    this.#db = db;
    notifications.register({ on: { [CHANNEL]: (name) => this.#running.get(name)?.abort() }, clear() {} });
  }

  /** Forwards a cancellation to all processes. Returns a signal that aborts when this message is canceled. */
  async track(
    { userId }: Member,
    { headers }: FastifyRequest,
    reply: FastifyReply,
    message: McpMessage | undefined,
  ): Promise<AbortSignal> {
    const running = new AbortController();
    const session = headers[SESSION_HEADER];
    if (session === undefined) return running.signal;
    // Request ids are unique within a client; the session separates the clients of a user.
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
