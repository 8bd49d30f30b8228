import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import { assertError, type Client, type Market } from "../../../test/market.ts";
import {
  assertOAuthError,
  authorizeUrl,
  consent,
  newVerifier,
  type OAuthClient,
  openOAuthMarket,
  postForm,
  redeem,
  refresh,
  registerPublicClient,
  requestCode,
  requestTokens,
  signedInBrowser,
  type Tokens,
} from "../../../test/oauth.ts";

const LEEWAY_SECONDS = 10;
const AT_ONCE = 10;

let market: Market;
let alice: Client;
let app: OAuthClient;
/** The service's time while it stands still. */
let heldAt: number | undefined;
before(async () => {
  market = await openOAuthMarket({ now: () => new Date(heldAt ?? Date.now()) });
  alice = await market.createUser();
  app = await registerPublicClient(market);
});
after(() => market.close());

/** Parallel requests of one code or token are honest within the leeway, which a pause of the machine could exceed. */
function holdTime(t: TestContext): number {
  heldAt = Date.now();
  t.after(() => {
    heldAt = undefined;
  });
  return heldAt;
}

const times = <T>(make: () => Promise<T>) => Promise.all(Array.from({ length: AT_ONCE }, make));
const calls = async ({ access_token }: Tokens) => (await market.as(access_token).get("/v1/products")).status;

/** Moves used rows back instead of the clock. */
const wait = (seconds: number) =>
  market.query(`update oauth_tokens set consumed_at = consumed_at - make_interval(secs => $1)`, [seconds]);

async function freshCode() {
  const verifier = newVerifier();
  return {
    verifier,
    code: await requestCode(market, await signedInBrowser(market, alice.userId), app, { verifier }),
  };
}

test("ten parallel redemptions of a code: one succeeds, and its tokens work", async (t) => {
  const { code, verifier } = await freshCode();
  holdTime(t);
  const replies = await times(() => redeem(market, app, code, verifier));
  const [winner, ...more] = replies.filter(({ status }) => status === 200);
  assert.ok(winner && more.length === 0);
  for (const reply of replies) if (reply !== winner) assertOAuthError(reply, 400, "invalid_grant");
  assert.equal(await calls(winner.body), 200);
  assert.equal((await refresh(market, app, winner.body.refresh_token)).status, 200);
});

test("ten parallel refreshes: one succeeds, and its tokens work", async (t) => {
  const { refresh_token } = await requestTokens(market, alice.userId, app);
  holdTime(t);
  const replies = await times(() => refresh(market, app, refresh_token));
  const [winner, ...more] = replies.filter(({ status }) => status === 200);
  assert.ok(winner && more.length === 0);
  for (const reply of replies) if (reply !== winner) assertOAuthError(reply, 400, "invalid_grant");
  assert.equal(await calls(winner.body), 200);
  assert.equal((await refresh(market, app, winner.body.refresh_token)).status, 200);
});

test("a refresh token reused after the leeway: the grant and its tokens end", async (t) => {
  const first = await requestTokens(market, alice.userId, app);
  const usedAt = holdTime(t);
  const second: Tokens = (await refresh(market, app, first.refresh_token)).body;
  heldAt = usedAt + LEEWAY_SECONDS * 1000 - 1;
  assertOAuthError(await refresh(market, app, first.refresh_token), 400, "invalid_grant");
  assert.equal(await calls(second), 200, "within it, honest requests may have crossed");

  heldAt++;
  assertOAuthError(await refresh(market, app, first.refresh_token), 400, "invalid_grant");
  assert.deepEqual([await calls(first), await calls(second)], [401, 401]);
  assertOAuthError(await refresh(market, app, second.refresh_token), 400, "invalid_grant");
  const { rows } = await market.query("select details from audit_log where action = 'oauth_grant.revoked'");
  assert.equal(rows.at(-1).details.clientId, app.id);
});

test("a code reused after the leeway: the grant and its tokens end", async () => {
  const { code, verifier } = await freshCode();
  const tokens: Tokens = (await redeem(market, app, code, verifier)).body;
  await wait(LEEWAY_SECONDS);
  assertOAuthError(await redeem(market, app, code, verifier), 400, "invalid_grant");
  assert.equal(await calls(tokens), 401);
  assertOAuthError(await refresh(market, app, tokens.refresh_token), 400, "invalid_grant");
});

test("a pushed authorization request: works once", async () => {
  const parameters = Object.fromEntries(authorizeUrl(market, app, { verifier: newVerifier() }).searchParams);
  const pushed = await postForm(market, app, "/oauth/par", parameters);
  assert.equal(pushed.status, 201, pushed.text);
  const url = new URL(`/oauth/authorize?client_id=${app.id}`, market.origin);
  url.searchParams.set("request_uri", pushed.body.request_uri);
  const browser = await signedInBrowser(market, alice.userId);
  assert.ok((await consent(browser, url)).get("code"));
  const again = await browser.open(url);
  assert.equal(again.status, 400);
  assert.match(again.text, /invalid_request_uri/);
});

test("the grant ends while a token is issued: no token", async () => {
  const { refresh_token } = await requestTokens(market, alice.userId, app);
  const session = await market.createSession(alice.userId);
  const { body } = await session.get("/v1/account/grants");
  const [reply] = await Promise.all([
    refresh(market, app, refresh_token),
    ...body.data.map(({ id }: { id: string }) => session.delete(`/v1/account/grants/${id}`)),
  ]);
  if (reply.status === 200)
    assertError(await market.as(reply.body.access_token).get("/v1/products"), 401, "INVALID_API_KEY");
  else assertOAuthError(reply, 400, "invalid_grant");
  const { rows } = await market.query("select 1 from oauth_tokens");
  assert.equal(rows.length, 0);
});

test("lifetimes: codes 60 seconds, access tokens 15 minutes, refresh tokens 30 days, 90 in all", async (t) => {
  // The OAuth library computes the expiry, and the service the creation.
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() });
  const { code } = await freshCode();
  const tokens = await requestTokens(market, alice.userId, app);
  const seconds = async (kind: string) => {
    const { rows } = await market.query(
      `select round(extract(epoch from expires_at - created_at))::int as lives from oauth_tokens
        where kind = $1 order by created_at desc limit 1`,
      [kind],
    );
    return rows[0].lives;
  };
  const near = (actual: number, expected: number) => assert.ok(Math.abs(actual - expected) <= 2, `${actual}`);
  assert.ok(code);
  near(await seconds("AuthorizationCode"), 60);
  near(await seconds("AccessToken"), 900);
  near(await seconds("RefreshToken"), 30 * 86_400);

  // As if issued 80 days ago and refreshed since.
  await market.query(
    `update oauth_tokens set payload = payload::jsonb || jsonb_build_object('iiat', (payload->>'iiat')::int - 80 * 86400)`,
  );
  t.mock.timers.tick(1_000);
  assert.equal((await refresh(market, app, tokens.refresh_token)).status, 200);
  near(await seconds("RefreshToken"), 10 * 86_400);
});

test("an expired code or token: refused", async () => {
  const { code, verifier } = await freshCode();
  const tokens = await requestTokens(market, alice.userId, app);
  await market.query("update oauth_tokens set expires_at = now() - interval '1 second'");
  assertOAuthError(await redeem(market, app, code, verifier), 400, "invalid_grant");
  assertOAuthError(await refresh(market, app, tokens.refresh_token), 400, "invalid_grant");
  assert.equal(await calls(tokens), 401);
});
