import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { Email } from "../src/platform/email/render-email.ts";
import type { Client, Market, Reply } from "./market.ts";

export const uniqueEmail = () => `${randomUUID()}@example.com`;

/** Emails to an address, newest first, unsealed. */
export async function emailsTo(market: Market, address: string): Promise<Email[]> {
  const { rows } = await market.query(
    "select id, sealed_email from emails where recipient = $1 order by id desc",
    [address],
  );
  return rows.map((row) => JSON.parse(market.service.ctx.vault.open(row.sealed_email, `mail|${row.id}`)));
}

export async function emailsToUser(market: Market, userId: string): Promise<Email[]> {
  const { rows } = await market.query("select email from users where id = $1", [userId]);
  return emailsTo(market, rows[0].email);
}

export const unwrapLines = (text: string) => text.replace(/\s+/g, " ");

/** The token of the link in the newest email. */
export async function tokenFromEmail(market: Market, address: string): Promise<string> {
  const [message] = await emailsTo(market, address);
  const link = /^(\S+)\/auth\/verify#token=([\w-]{43})$/m.exec(message?.text ?? "");
  assert.ok(link, `no link for ${address}: ${message?.text}`);
  assert.equal(link[1], market.service.ctx.links.origin());
  return link[2]!;
}

/** Requests a magic link and returns its token. */
export async function requestMagicLink(market: Market, email: string): Promise<string> {
  const reply = await market.as(null).post("/api/auth/magic-link", { email });
  assert.equal(reply.status, 200, reply.text);
  return tokenFromEmail(market, email);
}

/** Signs in with a magic link, which creates the account. */
export async function signInByLink(market: Market, email: string): Promise<Client> {
  const token = await requestMagicLink(market, email);
  const reply = await market.as(null).post("/api/auth/verify", { token });
  assert.equal(reply.status, 200, reply.text);
  return market.as(reply.body.sessionToken);
}

/** Registers and verifies the address: an account with a password. */
export async function registerAccount(market: Market, email: string, password: string): Promise<Client> {
  const asked = await market.as(null).post("/api/auth/register", { email, password, name: "Ada" });
  assert.equal(asked.status, 200, asked.text);
  const { registrationSecret } = asked.body.data;
  const token = await tokenFromEmail(market, email);
  const reply = await market.as(null).post("/api/auth/verify", { token, registrationSecret });
  assert.equal(reply.status, 200, reply.text);
  return market.as(reply.body.sessionToken);
}

export const isSignedIn = async (session: Client): Promise<boolean> =>
  (await session.get("/v1/purchases")).status === 200;

export const sessionIdOf = (token: string): string =>
  JSON.parse(Buffer.from(token.split(".")[1]!, "base64url").toString()).jti;

/** A reply without time and request id. */
export const withoutMeta = ({ status, body, headers }: Reply) => ({
  status,
  body: { ...body, meta: null },
  headers: [...headers].filter(([name]) => !["date", "x-request-id"].includes(name)),
});
