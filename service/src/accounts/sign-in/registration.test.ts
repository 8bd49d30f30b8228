import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import {
  emailsTo,
  isSignedIn,
  registerAccount,
  tokenFromEmail,
  uniqueEmail,
  withoutMeta,
} from "../../../test/emails.ts";
import { assertError, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { statementsOf } from "../../../test/statements.ts";

const PASSWORD = "correct horse battery staple";

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

const BROWSER = { cookie: `__Host-registration=${"b".repeat(43)}` };
const register = (input: object, headers: Record<string, string> = BROWSER) =>
  market
    .as(null)
    .post("/api/auth/register", { email: uniqueEmail(), password: PASSWORD, name: "Ada", ...input }, headers);
const logIn = (email: string, password = PASSWORD) =>
  market.as(null).post("/api/auth/login", { email, password });

test("POST /api/auth/register: creates an account when the link is used, then the password works", async () => {
  const email = uniqueEmail();
  assert.equal((await register({ email, name: "  Ada Lovelace " })).status, 200);
  assertError(await logIn(email), 401, "INVALID_CREDENTIALS");
  const token = await tokenFromEmail(market, email);
  const reply = await market.as(null).post("/api/auth/verify", { token }, BROWSER);
  assert.ok(await isSignedIn(market.as(reply.body.sessionToken)));
  assert.equal((await logIn(email)).status, 200);
  const { rows } = await market.query("select name, email_verified_at from users where email = $1", [email]);
  assert.deepEqual(rows, [{ name: "Ada Lovelace", email_verified_at: market.clock.now }]);
});

test("a known address: the same answer, equal statements, an email, and the old password stays", async () => {
  const email = uniqueEmail();
  await registerAccount(market, email, PASSWORD);
  const replies: Reply[] = [];
  const registering = (address: string) =>
    statementsOf(async () => {
      replies.push(await register({ email: address, password: "another password", name: "Eve" }));
    });
  assert.deepEqual(await registering(email), await registering(uniqueEmail()));
  const [known, unknown] = replies.map(withoutMeta);
  assert.equal(known?.status, 200);
  assert.deepEqual(known, unknown);
  const [message] = await emailsTo(market, email);
  assert.match(message!.subject, /already/);
  assert.equal(
    (await market.as(null).post("/api/auth/verify", { token: await tokenFromEmail(market, email) })).status,
    200,
  );
  assertError(await logIn(email, "another password"), 401, "INVALID_CREDENTIALS");
  assert.equal((await logIn(email)).status, 200);
});

test("two registrations of one address: the first confirmed one sets the password", async () => {
  const email = uniqueEmail();
  await register({ email, password: "the first one" });
  const first = await tokenFromEmail(market, email);
  await register({ email, password: "the second one" });
  const second = await tokenFromEmail(market, email);
  await market.as(null).post("/api/auth/verify", { token: second }, BROWSER);
  await market.as(null).post("/api/auth/verify", { token: first }, BROWSER);
  assert.equal((await logIn(email, "the second one")).status, 200);
  assertError(await logIn(email, "the first one"), 401, "INVALID_CREDENTIALS");
});

suite("the password of a registration", () => {
  const PAGE = { "sec-fetch-site": "same-origin" };

  /** Registers with one set of headers and confirms with another. */
  async function registerAndConfirm(
    registering: Record<string, string>,
    confirming: (cookie: string) => object,
  ) {
    const email = uniqueEmail();
    const registered = await register({ email }, registering);
    const cookie = registered.headers.get("set-cookie")!.split(";")[0]!;
    const token = await tokenFromEmail(market, email);
    const reply = await market.as(null).post("/api/auth/verify", { token }, { ...confirming(cookie) });
    assert.equal(reply.status, 200, reply.text);
    assert.ok(await isSignedIn(market.as(reply.body.sessionToken)));
    return email;
  }

  test("set when the same browser confirms, also at the second attempt", async () => {
    const email = await registerAndConfirm(PAGE, (cookie) => ({ ...PAGE, cookie }));
    assert.equal((await logIn(email)).status, 200);
    assert.equal(
      (await logIn(await registerAndConfirm({ ...PAGE, ...BROWSER }, () => ({ ...PAGE, ...BROWSER }))))
        .status,
      200,
    );
  });

  test("set when a program sends the registrationSecret of the answer", async () => {
    const email = uniqueEmail();
    const { registrationSecret } = (await register({ email }, {})).body.data;
    const token = await tokenFromEmail(market, email);
    await market.as(null).post("/api/auth/verify", { token, registrationSecret });
    assert.equal((await logIn(email)).status, 200);
  });

  for (const [how, body] of [
    ["no secret", {}],
    ["the secret of another registration", { registrationSecret: "c".repeat(43) }],
  ] as const) {
    test(`not set when a program redeems the link with ${how}: it may be a stranger's`, async () => {
      const email = uniqueEmail();
      await register({ email }, {});
      const token = await tokenFromEmail(market, email);
      const reply = await market.as(null).post("/api/auth/verify", { token, ...body });
      assert.equal(reply.status, 200, reply.text);
      assertError(await logIn(email), 401, "INVALID_CREDENTIALS");
    });
  }

  for (const [who, headers] of [
    ["another browser", PAGE],
    ["an older one, which tells no more than Origin", {}],
    ["one with a mark of its own", { ...PAGE, cookie: `__Host-registration=${"c".repeat(43)}` }],
    ["one with an empty mark", { ...PAGE, cookie: "__Host-registration=" }],
  ] as const) {
    test(`not set when ${who} confirms: it may be a stranger's, and an email says so`, async () => {
      const email = await registerAndConfirm(PAGE, () => ({ origin: market.origin, ...headers }));
      assertError(await logIn(email), 401, "INVALID_CREDENTIALS");
      const { rows } = await market.query("select password_hash from users where email = $1", [email]);
      assert.deepEqual(rows, [{ password_hash: null }]);
      assert.match((await emailsTo(market, email))[0]!.subject, /no password yet/);
    });
  }
});

test("the name of a registration: not in the email", async () => {
  const email = uniqueEmail();
  await register({ email, name: "You won! http://evil.example" });
  assert.doesNotMatch(JSON.stringify(await emailsTo(market, email)), /evil/);
});

test("one address: at most five registration emails in 15 minutes", async () => {
  const email = uniqueEmail();
  for (let tries = 0; tries < 5; tries++) assert.equal((await register({ email })).status, 200);
  assertError(await register({ email }), 429, "RATE_LIMIT_EXCEEDED");
  assert.equal((await emailsTo(market, email)).length, 5);
});

test("a password with the service's name and eight more characters: accepted", async () => {
  assert.equal((await register({ password: "my stoa pass phrase" })).status, 200);
});

suite("refused with the field:", () => {
  for (const [why, input, field] of [
    ["a short password", { password: "7 chars" }, "password"],
    ["an endless password", { password: "x1".repeat(101) }, "password"],
    ["a common password", { password: "Password1" }, "password"],
    ["one character again and again", { password: "ⓧ".repeat(12) }, "password"],
    ["the address as the password", { email: "ada@example.com", password: "Ada@Example.com" }, "password"],
    ["its local part", { email: "ada.lovelace@example.com", password: "ada.Lovelace" }, "password"],
    ["the service's name and four digits", { password: "stoa1234" }, "password"],
    ["the service's name and a common password", { password: "Stoa12345678" }, "password"],
    ["the own name and the year", { name: "Grace Hopper", password: "Hopper2026" }, "password"],
    ["a part of the address", { email: "grace@analytics.example", password: "Analytics1!" }, "password"],
    ["no name", { name: "   " }, "name"],
    ["a name of two lines", { name: "Ada\r\nBcc: eve@evil.example" }, "name"],
    ["a mailbox trick", { email: "ada@example.com,eve@evil.example" }, "email"],
    ["an unknown field", { role: "admin" }, "role"],
  ] as const) {
    test(why, async () => {
      assertError(await register(input), 400, "INVALID_REQUEST", field);
    });
  }
});
