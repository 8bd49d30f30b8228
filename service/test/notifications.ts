import assert from "node:assert/strict";
import type { Notification } from "@stoa/contract";
import type { Client } from "./market.ts";

/** Newest first. */
export async function notificationsOf(who: Client, query = ""): Promise<Notification[]> {
  const reply = await who.get(`/v1/notifications?limit=100${query}`);
  assert.equal(reply.status, 200, reply.text);
  return reply.body.data;
}

export const titlesOf = async (who: Client): Promise<string[]> =>
  (await notificationsOf(who)).map(({ title }) => title);

/** The newest notification of a kind. */
export async function lastOf(who: Client, kind: Notification["kind"]): Promise<Notification> {
  const found = (await notificationsOf(who)).find((each) => each.kind === kind);
  assert.ok(found, `no notification ${kind}`);
  return found;
}
