import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { grantTypes, permissions } from "@stoa/contract";
import { decodeJwt } from "jose";
import { authenticatorOf } from "../../../test/authenticator.ts";
import { Browser } from "../../../test/browser.ts";
import { dumpDatabase } from "../../../test/dump.ts";
import { uniqueEmail } from "../../../test/emails.ts";
import { CLIENT, type FakeGitHub, startFakeGitHub } from "../../../test/identity-servers.ts";
import { type MailServer, startMailServer } from "../../../test/mail-server.ts";
import type { Client, Market, Reply } from "../../../test/market.ts";
import {
  authorizeUrl,
  newVerifier,
  openOAuthMarket,
  postForm,
  postTokenRequest,
  redeem,
  refresh,
  requestCode,
  signedInBrowser,
} from "../../../test/oauth.ts";
import { createFirstAdminLink } from "../../backoffice/admin/first-admin.ts";
import { toUuid } from "../../core/ids.ts";
import { createLog } from "../../core/log.ts";
import { GUEST_COOKIE } from "./authenticate.ts";

const PASSWORD = "PASSWORDMARK of the horse";
const NEW_PASSWORD = "NEWPASSWORDMARK of the horse";
const MAIL_PASSWORD = "MAILPASSWORDMARK/+";

/** Every credential by kind. */
const secrets: Record<string, string> = {};
const logs: string[] = [];
let market: Market;
let github: FakeGitHub;
let mailServer: MailServer;
let nobody: Client;

before(async () => {
  github = await startFakeGitHub();
  mailServer = await startMailServer({ account: { user: "stoa", password: MAIL_PASSWORD } });
  market = await openOAuthMarket({
    config: {
      roles: { api: true, worker: true },
      mail: "smtp",
      smtpUrl: mailServer.url,
      github: { ...CLIENT, issuer: github.issuer },
    },
    log: createLog("trace", { write: (line: string) => void logs.push(line) }),
  });
  nobody = market.as(null);
  const email = uniqueEmail();
  const session = await signIn(email);
  await useKeys(session);
  await useOAuth(session);
  await useTwoFactor(session, email);
  await signInElsewhere();
});
after(() => Promise.all([market?.close(), github?.close(), mailServer?.close()]));

const good = (reply: Reply): Reply => {
  assert.ok(reply.status < 300, `${reply.status} ${reply.text}`);
  return reply;
};

const request = async (path: string, json: object, headers: Record<string, string> = {}) =>
  good(await nobody.post(`/api/auth/${path}`, json, headers));

/** The token of the n-th link sent to an address, once it has arrived. */
async function mailedToken(address: string, n: number): Promise<string> {
  for (let count = 1; ; count++) {
    const messages = await mailServer.received(count);
    const links = messages
      .filter(({ recipients }) => recipients.includes(address))
      .flatMap(({ text }) => /#token=([\w-]{43})/.exec(text)?.[1] ?? []);
    if (links.length >= n) return links[n - 1]!;
  }
}

/** Registration, used and unused links, right and wrong passwords, the visitor's cookie and the operator's link. */
async function signIn(email: string): Promise<Client> {
  const asked = await request("register", { email, password: PASSWORD, name: "Ada" });
  const { registrationSecret } = asked.body.data;
  const used = await mailedToken(email, 1);
  const { body } = await request("verify", { token: used, registrationSecret });
  await request("magic-link", { email });
  const second = await request("login", { email, password: PASSWORD });
  await nobody.post("/api/auth/login", { email, password: `${PASSWORD}!` });
  await nobody.post("/api/auth/verify", { token: used });
  const session = market.as(body.sessionToken);
  good(await session.put("/v1/account/password", { password: NEW_PASSWORD, currentPassword: PASSWORD }));
  await nobody.get("/v1/products", { cookie: `__Host-session=${second.body.sessionToken}` });
  const page = await nobody.get("/auth/sign-in", { accept: "text/html" });
  const guest = new RegExp(`${GUEST_COOKIE}=([^;]+)`).exec(page.headers.getSetCookie().join())![1]!;
  await nobody.get("/v1/products", { cookie: `${GUEST_COOKIE}=${guest}` });
  const adminLink = new URL((await createFirstAdminLink(market.service.ctx))!);
  await nobody.post("/api/auth/first-admin", { token: adminLink.hash.slice("#token=".length) });
  Object.assign(secrets, {
    "a registration's secret": registrationSecret,
    "a password": PASSWORD,
    "a new password": NEW_PASSWORD,
    "a used link": used,
    "an unused link": await mailedToken(email, 2),
    "a session": body.sessionToken,
    "an ended session": second.body.sessionToken,
    "a visitor's cookie": guest,
    "the first administrator's link": adminLink.hash.slice("#token=".length),
    "the mail server's password": MAIL_PASSWORD,
  });
  return session;
}

/** Creates, uses, rotates and repeats keys. The part before the secret is public. */
async function useKeys(session: Client): Promise<void> {
  const keyInput = { name: "laptop", permissions: { "products:read": true, "ai:execute": true } };
  const once = { "idempotency-key": "secrets" };
  const made = good(await session.post("/v1/api-keys", keyInput, once)).body.data;
  await session.post("/v1/api-keys", keyInput, once);
  good(await market.as(made.key).get("/v1/products"));
  const path = `/v1/api-keys/${made.id}/rotate`;
  const { key } = good(await session.post(path, {}, once)).body.data;
  good(await nobody.get(`/v1/products?api_key=${key}`));
  await market.as(`${key.slice(0, -1)}~`).get("/v1/products");
  const provider = { provider: "openai", name: "mine", key: "sk-PROVIDERKEYMARK-0123456789" };
  good(await session.post("/v1/ai/keys", provider, once));
  const secretHalf = (value: string) => value.slice(22, 54);
  Object.assign(secrets, {
    "a key": secretHalf(made.key),
    "a key in place of another": secretHalf(key),
    "a provider's key": provider.key,
  });
}

/** A client with two secrets, an open and a pushed request, used and unused codes, tokens of every kind. */
async function useOAuth(session: Client): Promise<void> {
  const userId = toUuid("usr", decodeJwt(session.key).sub!)!;
  const { body } = good(
    await session.post(
      "/v1/oauth-clients",
      {
        name: "App",
        redirectUris: ["https://app.example/callback"],
        grantTypes: [...grantTypes],
        scopes: [...permissions],
      },
      { "idempotency-key": "secrets" },
    ),
  );
  const rotated = good(await session.post(`/v1/oauth-clients/${body.data.clientId}/rotate-secret`));
  const { clientId, clientSecret, redirectUris } = rotated.body.data;
  const app = { id: clientId, secret: clientSecret, redirectUri: redirectUris[0] };
  const browser = await signedInBrowser(market, userId);
  const verifier = newVerifier();
  const scope = "openid products:read offline_access";
  const pending = await browser.open(authorizeUrl(market, app, { verifier, scope }));
  const asked = Object.fromEntries(authorizeUrl(market, app, { verifier, scope }).searchParams);
  const pushed = good(await postForm(market, app, "/oauth/par", asked));
  const code = await requestCode(market, browser, app, { verifier, scope });
  const unused = await requestCode(market, browser, app, { verifier, scope });
  const tokens = good(await redeem(market, app, code, verifier)).body;
  const later = good(await refresh(market, app, tokens.refresh_token)).body;
  const own = good(
    await postTokenRequest(market, app, { grant_type: "client_credentials", scope: "products:read" }),
  );
  good(await market.as(later.access_token).get("/v1/products"));
  good(await postForm(market, app, "/oauth/introspect", { token: later.refresh_token }));
  good(await postForm(market, app, "/oauth/revoke", { token: own.body.access_token }));
  await nobody.get(`/v1/products?api_key=${later.access_token}`);
  Object.assign(secrets, {
    "a client's first secret": body.data.clientSecret,
    "a client's secret": clientSecret,
    "a request on its way": pending.url.pathname.split("/").at(-1)!,
    "a request pushed ahead": pushed.body.request_uri.split(":").at(-1),
    "a verifier": verifier,
    "a used code": code,
    "an unused code": unused,
    "an access token": tokens.access_token,
    "a used refresh token": tokens.refresh_token,
    "a refresh token": later.refresh_token,
    "a token of the client's own": own.body.access_token,
    "an ID token": tokens.id_token,
    "the OAuth server's cookie": browser.cookie("__Host-oauth-session")!,
  });
}

/** Set-up, confirmation, right and wrong codes, and an unanswered challenge. */
async function useTwoFactor(session: Client, email: string): Promise<void> {
  const { secret } = good(await session.post("/v1/account/two-factor")).body.data;
  // The service uses the real clock here.
  market.clock.now = new Date();
  const code = authenticatorOf(market, secret).code();
  const { backupCodes } = good(await session.post("/v1/account/two-factor/confirm", { code })).body.data;
  const login = () => nobody.post("/api/auth/login", { email, password: NEW_PASSWORD });
  const { challenge } = (await login()).body.error.details;
  const { challenge: open } = (await login()).body.error.details;
  await nobody.post("/api/auth/two-factor", { challenge, code: "BACKU-PMARK" });
  const entered = await request("two-factor", { challenge, code: backupCodes[0] });
  await request("logout", {}, { authorization: `Bearer ${entered.body.sessionToken}` });
  Object.assign(secrets, {
    "an app's secret": secret,
    "a used backup code": backupCodes[0],
    "a backup code": backupCodes[1],
    "a backup code without dashes": backupCodes[2].replaceAll("-", ""),
    "a wrong backup code": "BACKU-PMARK",
    "a used challenge": challenge,
    "an open challenge": open,
    "a session of two factors": entered.body.sessionToken,
  });
}

/** Two sign-ins with GitHub: one completed, one abandoned. */
async function signInElsewhere(): Promise<void> {
  const email = uniqueEmail();
  github.person = { id: 7, login: "eve", name: "Eve", emails: [{ email, primary: true, verified: true }] };
  const browser = new Browser(market.origin);
  const goes = () =>
    browser.followUntil(`${market.origin}/api/auth/github`, `${market.origin}/api/auth/callback/github`);
  const callback = new URL(await goes());
  const flow = browser.cookie("__Host-flow-github")!;
  await browser.get(callback.href);
  const session = browser.cookie("__Host-session")!;
  const open = new URL(await goes());
  Object.assign(secrets, {
    "GitHub's code": callback.searchParams.get("code")!,
    "a used state": callback.searchParams.get("state")!,
    "an open state": open.searchParams.get("state")!,
    "a flow's cookie": flow,
    "an open flow's cookie": browser.cookie("__Host-flow-github")!,
    "a session by GitHub": session,
    "our secret at GitHub": CLIENT.clientSecret,
    "GitHub's token": github.issuedTokens[0]!,
  });
}

/** The text and its bytes in each encoding that a bytea column, a JWK or an unsealed text would show. */
const spellings = (secret: string) => {
  const bytes = Buffer.from(secret, "base64url");
  const asIs = [secret, encodeURIComponent(secret), Buffer.from(secret).toString("hex")];
  return bytes.length < 16 ? asIs : [...asIs, bytes.toString("hex"), bytes.toString("base64")];
};

function assertAbsent(text: string, where: string): void {
  const low = text.toLowerCase();
  for (const [what, secret] of Object.entries(secrets))
    for (const spelling of spellings(secret))
      assert.ok(!low.includes(spelling.toLowerCase()), `${what} is in ${where}`);
}

suite("after creating and using each kind of credential, no usable one", () => {
  test("is missing in this test", () => {
    assert.ok(Object.keys(secrets).length >= 40);
    for (const [what, secret] of Object.entries(secrets))
      assert.ok(secret.length >= 11, `${what}: ${secret}`);
  });

  test("is in a dump of the database, including its queue", async () => {
    const dump = await dumpDatabase(market);
    for (const sign of ["session.started", "oauth_grant.given", "api_key.rotated", "send-mail", "mailId"])
      assert.ok(dump.includes(sign), `the dump tells of ${sign}`);
    assertAbsent(dump, "the database");
    assert.doesNotMatch(dump, /"(d|p|q|dp|dq|qi)": ?"/, "no private key");
  });

  test("is in the log at its most verbose level", () => {
    const log = logs.join("\n");
    for (const path of ["/api/auth/verify", "/v1/api-keys", "/oauth/token", "/v1/account/two-factor"])
      assert.ok(log.includes(path), `the log tells of ${path}`);
    assertAbsent(log, "the log");
    assert.doesNotMatch(log, /@example\.com|argon2|__Host-|bearer/i);
  });
});
