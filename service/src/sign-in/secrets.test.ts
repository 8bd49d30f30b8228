import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { lettersTo, someAddress, tokenIn } from "../../test/letters.ts";
import { type Market, openMarket } from "../../test/market.ts";
import { mintOneTimeToken } from "./one-time-tokens.ts";

const PASSWORD = "PASSWORDMARK of the horse";

let market: Market;
/** Everything with which somebody could come in, by what it is. */
const secrets: Record<string, string> = { password: PASSWORD };

before(async () => {
  market = await openMarket();
  const email = someAddress();
  const post = (path: string, json: object, headers: Record<string, string> = {}) =>
    market.as(null).post(`/api/auth/${path}`, json, headers);
  await post("register", { email, password: PASSWORD, name: "Ada" });
  secrets["used link"] = await tokenIn(market, email);
  const verified = await post("verify", { token: secrets["used link"] });
  secrets["session"] = verified.body.sessionToken;
  await post("magic-link", { email });
  secrets["unused link"] = await tokenIn(market, email);
  await post("register", { email: someAddress(), password: PASSWORD, name: "Eve" });
  await post("login", { email, password: PASSWORD }, { cookie: `__Host-session=${secrets["session"]}` });
  await post("login", { email, password: PASSWORD.toLowerCase() });
  await post("verify", { token: secrets["used link"] });
  const { ctx } = market.service;
  secrets["challenge"] = await mintOneTimeToken(ctx, ctx.db, {
    purpose: "two-factor",
    userId: (await market.query("select id from users where email = $1", [email])).rows[0].id,
    lifetimeMs: 60_000,
  });
  await post("two-factor", { challenge: secrets["challenge"], code: "CODEMARK" });
  secrets["code"] = "CODEMARK";
  await post("logout", {}, { authorization: `Bearer ${secrets["session"]}` });
  assert.ok((await lettersTo(market, email)).length >= 2);
});
after(() => market.close());

/** Every row of every table as text, as a dump would hold it. */
async function dump(): Promise<string> {
  const { rows: tables } = await market.query(
    "select quote_ident(table_name) as name from information_schema.tables where table_schema = 'public'",
  );
  assert.ok(tables.length > 10);
  const texts = [];
  for (const { name } of tables) {
    const { rows } = await market.query(`select t::text as row from ${name} t`);
    texts.push(...rows.map(({ row }) => row));
  }
  return texts.join("\n");
}

test("no secret is in a dump of the database, in no spelling", async () => {
  const text = (await dump()).toLowerCase();
  assert.ok(text.includes("session.started"), "the dump is one of this service");
  for (const [what, secret] of Object.entries(secrets)) {
    const bytes = Buffer.from(secret, "base64url");
    for (const spelling of [
      secret,
      bytes.toString("hex"),
      Buffer.from(secret).toString("hex"),
      bytes.toString("base64"),
    ])
      assert.ok(!text.includes(spelling.toLowerCase()), `${what} is in the database`);
  }
});

test("no secret is in a log line", () => {
  const log = market.logs.join("\n");
  assert.match(log, /\/api\/auth\/verify/, "the requests were logged");
  for (const [what, secret] of Object.entries(secrets))
    assert.ok(!log.includes(secret), `${what} is in the log`);
  assert.doesNotMatch(log, /@example\.com|argon2|__Host-session/);
});
