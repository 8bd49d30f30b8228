import type { Endpoint } from "@stoa/contract";
import type { Client, Market } from "./market.ts";

/** Returns an allowed caller for each endpoint: none for public ones, else an administrator's session. */
export async function allowedCallers(
  market: Market,
  member: Client,
): Promise<(endpoint: Endpoint) => Client> {
  await market.query("update users set role = 'admin' where id = $1", [member.userId]);
  const admin = await market.createSession(member.userId, { secondFactor: true });
  const nobody = market.as(null);
  return ({ access }) => (access.who === "public" ? nobody : admin);
}
