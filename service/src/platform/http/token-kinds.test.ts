import assert from "node:assert/strict";
import { createHmac, generateKeyPairSync, hkdfSync, randomBytes } from "node:crypto";
import { after, before, suite, test } from "node:test";
import { base64url, decodeJwt, decodeProtectedHeader, type JWTPayload, SignJWT } from "jose";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import {
  assertOAuthError,
  createOAuthClient,
  newVerifier,
  type OAuthClient,
  openOAuthMarket,
  postForm,
  postTokenRequest,
  requestCode,
  requestTokens,
  signedInBrowser,
} from "../../../test/oauth.ts";
import { mintOneTimeToken, type TokenPurpose } from "../../accounts/sign-in/one-time-tokens.ts";
import { DAY_MS } from "../../core/dates.ts";
import { GUEST_COOKIE, SESSION_COOKIE } from "./authenticate.ts";

let market: Market;
let member: Client;
let app: OAuthClient;
/** One token of every kind, all of one account, each valid at its own place. */
let tokens: Record<string, string>;

before(async () => {
  market = await openOAuthMarket();
  member = await market.createUser();
  const { ctx } = market.service;
  const oneTime = (purpose: TokenPurpose) =>
    mintOneTimeToken(ctx, ctx.db, { purpose, userId: member.userId, lifetimeMs: 600_000 });
  const session = (await market.createSession(member.userId, { secondFactor: true })).key;
  const orderId = await buyProduct(member, await createProduct(await market.createUser()));
  const { downloadUrl } = (await member.get(`/v1/purchases/${orderId}`)).body.data;
  tokens = {
    "an API key": member.key,
    "a session token": session,
    "a guest cookie": ctx.guests.cookie().value,
    "a magic link's token": await oneTime("magic-link"),
    "a registration's token": await oneTime("registration"),
    "a second factor's challenge": await oneTime("two-factor"),
    "a state of signing in elsewhere": await oneTime("social"),
    "the first administrator's token": await oneTime("first-admin"),
    "a link's signature": new URL(downloadUrl).searchParams.get("signature")!,
    "a session's id": decodeJwt(session).jti!,
    "an account's id": decodeJwt(session).sub!,
    ...(await oauthTokens()),
  };
});
after(() => market.close());

/** Tokens of the OAuth server: for the API, and for /oauth/userinfo. */
async function oauthTokens() {
  app = await createOAuthClient(market, member);
  const browser = await signedInBrowser(market, member.userId);
  const code = await requestCode(market, browser, app, { verifier: newVerifier() });
  const api = await requestTokens(market, member.userId, app, {
    scope: "openid products:read offline_access",
  });
  const profile = await requestTokens(market, member.userId, app, { scope: "openid profile" });
  return {
    "an access token": api.access_token,
    "a refresh token": api.refresh_token,
    "an access token for user info": profile.access_token,
    "an ID token": profile.id_token,
    "an authorization code": code,
    "an OAuth client's secret": app.secret!,
    "a cookie of the OAuth server": browser.cookie("__Host-oauth-session")!,
  };
}

/** Each place for a credential, and the kinds that it accepts. */
const places: Record<string, { ask(token: string): Promise<{ status: number }>; takes: string[] }> = {
  "in the Authorization header": {
    ask: (token) => market.as(null).get("/v1/products", { authorization: `Bearer ${token}` }),
    takes: ["an API key", "a session token", "an access token"],
  },
  "as api_key in the query": {
    ask: (token) => market.as(null).get(`/v1/products?api_key=${encodeURIComponent(token)}`),
    takes: ["an API key"],
  },
  "in the session cookie": {
    ask: (token) => market.as(null).get("/v1/products", { cookie: `${SESSION_COOKIE}=${token}` }),
    takes: ["a session token"],
  },
  "in the guest cookie": {
    ask: (token) => market.as(null).get("/v1/products", { cookie: `${GUEST_COOKIE}=${token}` }),
    takes: ["a guest cookie"],
  },
};

for (const [place, { ask, takes }] of Object.entries(places)) {
  test(`${place}: only ${takes.join(" and ")}; every other kind of token is 401`, async () => {
    for (const [kind, token] of Object.entries(tokens)) {
      const { status } = await ask(token);
      assert.equal(status, takes.includes(kind) ? 200 : 401, `${kind} ${place}`);
    }
  });
}

const doors: Record<string, { body(token: string): object; takes: string[] }> = {
  "/api/auth/verify": {
    body: (token) => ({ token }),
    takes: ["a magic link's token", "a registration's token"],
  },
  "/api/auth/two-factor": {
    body: (challenge) => ({ challenge, code: "123456" }),
    takes: ["a second factor's challenge"],
  },
  "/api/auth/first-admin": { body: (token) => ({ token }), takes: ["the first administrator's token"] },
};

for (const [path, { body, takes }] of Object.entries(doors)) {
  test(`${path}: only ${takes.join(" and ")}; every other token is 401`, async () => {
    const session = { authorization: `Bearer ${tokens["a session token"]!}` };
    for (const [kind, token] of Object.entries(tokens)) {
      if (takes.includes(kind)) continue;
      assertError(await market.as(null).post(path, body(token), session), 401, "INVALID_TOKEN");
    }
  });
}

/** Each grant's field at the token endpoint, and the kinds that it accepts. */
const grants: Record<string, { field: string; takes: string }> = {
  refresh_token: { field: "refresh_token", takes: "a refresh token" },
  authorization_code: { field: "code", takes: "an authorization code" },
};

for (const [grant_type, { field, takes }] of Object.entries(grants)) {
  test(`/oauth/token, ${field}: only ${takes}`, async () => {
    const more = { redirect_uri: app.redirectUri, code_verifier: newVerifier() };
    for (const [kind, token] of Object.entries(tokens)) {
      if (kind === takes) continue;
      const reply = await postTokenRequest(market, app, { grant_type, [field]: token, ...more });
      assertOAuthError(reply, 400, "invalid_grant");
    }
  });
}

test("/oauth/token, client_secret: only that secret", async () => {
  for (const [kind, token] of Object.entries(tokens)) {
    const reply = await postTokenRequest(
      market,
      { ...app, secret: token },
      { grant_type: "client_credentials", scope: "products:read" },
    );
    assert.equal(reply.status, kind === "an OAuth client's secret" ? 200 : 401, `${kind} ${reply.text}`);
  }
});

test("/oauth/userinfo: only its own access token; one for the API is 403, all others 401", async () => {
  const expected: Record<string, number> = { "an access token for user info": 200, "an access token": 403 };
  for (const [kind, token] of Object.entries(tokens)) {
    const { status } = await market.as(token).get("/oauth/userinfo");
    assert.equal(status, expected[kind] ?? 401, kind);
  }
});

test("/oauth/introspect and /oauth/revoke: OAuth tokens only", async () => {
  const known = ["an access token", "a refresh token", "an access token for user info"];
  const others = Object.entries(tokens).filter(([kind]) => !known.includes(kind));
  for (const kind of known) {
    const { body } = await postForm(market, app, "/oauth/introspect", { token: tokens[kind]! });
    assert.equal(body.active, true, kind);
  }
  for (const [kind, token] of others) {
    const { body } = await postForm(market, app, "/oauth/introspect", { token });
    assert.ok(body.active === false || body.error === "unsupported_token_type", kind);
    await postForm(market, app, "/oauth/revoke", { token });
  }
  for (const { ask, takes } of Object.values(places))
    for (const kind of takes) assert.equal((await ask(tokens[kind]!)).status, 200, `${kind} works on`);
});

test("a session id in the header: no other kind of token", async () => {
  const token = tokens["the first administrator's token"]!;
  for (const [kind, credential] of Object.entries(tokens)) {
    if (kind === "a session token") continue;
    for (const headers of [
      { authorization: `Bearer ${credential}` },
      { cookie: `${SESSION_COOKIE}=${credential}` },
    ] as Record<string, string>[])
      assertError(
        await market.as(null).post("/api/auth/first-admin", { token }, headers),
        401,
        "INVALID_SESSION",
      );
  }
});

suite("a forged session token: 401", () => {
  const good = () => tokens["a session token"]!;
  const json = (value: unknown) => base64url.encode(JSON.stringify(value));
  const sessionKey = () => market.service.ctx.config.sessionKeys[0]!;
  const derived = (purpose: string) => Buffer.from(hkdfSync("sha256", sessionKey(), "", purpose, 32));
  /** Uses our session key, so that only the content is wrong. */
  const signedByUs = (payload: JWTPayload, header: object = {}) =>
    new SignJWT(payload)
      .setProtectedHeader({ ...decodeProtectedHeader(good()), alg: "HS256", ...header })
      .sign(derived("stoa sessions"));

  async function assertRefused(token: string) {
    for (const headers of [
      { authorization: `Bearer ${token}` },
      { cookie: `${SESSION_COOKIE}=${token}` },
    ] as Record<string, string>[])
      assertError(await market.as(null).get("/v1/products", headers), 401, "INVALID_API_KEY");
  }

  test("as we sign it: valid, so the cases below fail for their one difference", async () => {
    const again = await signedByUs(decodeJwt(good()));
    assert.equal((await market.as(again).get("/v1/products")).status, 200);
  });

  test("alg none in any case, with and without a signature", async () => {
    const [header, payload, signature] = good().split(".");
    for (const alg of ["none", "None", "NONE", "nOnE"]) {
      const unsigned = json({ ...decodeProtectedHeader(good()), alg });
      for (const end of ["", signature!, "x"]) await assertRefused(`${unsigned}.${payload}.${end}`);
    }
    await assertRefused(`${header}.${payload}.`);
    await assertRefused(`${header}.${payload}`);
  });

  test("another algorithm with the right secret", async () => {
    for (const alg of ["HS384", "HS512"]) {
      const secret = Buffer.concat([derived("stoa sessions"), derived("stoa sessions")]);
      const { kid } = decodeProtectedHeader(good());
      const token = new SignJWT(decodeJwt(good())).setProtectedHeader({ alg, typ: "JWT", kid: kid! });
      await assertRefused(await token.sign(secret));
    }
  });

  test("signed with the forger's private key, whose public half is included (key confusion)", async () => {
    const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const { kid } = decodeProtectedHeader(good());
    const jwk = { ...publicKey.export({ format: "jwk" }), kid: kid! };
    for (const header of [
      {},
      { jwk },
      { jku: "https://evil.example/jwks" },
      { x5u: "https://evil.example" },
    ]) {
      const token = new SignJWT(decodeJwt(good()));
      token.setProtectedHeader({ alg: "RS256", typ: "JWT", kid: kid!, ...header });
      await assertRefused(await token.sign(privateKey));
    }
    const pem = publicKey.export({ type: "spki", format: "pem" }) as string;
    await assertRefused(await hmacSigned(json({ alg: "HS256", typ: "JWT", kid }), Buffer.from(pem)));
  });

  const hmacSigned = async (header: string, secret: Buffer) => {
    const text = `${header}.${good().split(".")[1]}`;
    return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
  };

  test("signed with a secret of another purpose: links, guests, the session key itself, nothing", async () => {
    const [header] = good().split(".");
    for (const secret of [
      derived("stoa signed links"),
      derived("stoa guests"),
      derived("stoa session key id"),
      sessionKey(),
      randomBytes(32),
      Buffer.alloc(32),
      Buffer.from(""),
    ])
      await assertRefused(await hmacSigned(header!, secret));
  });

  test("an unknown kid", async () => {
    for (const kid of ["", "x", "../../../dev/null", "' or 1=1 --", "0".repeat(12)])
      await assertRefused(await signedByUs(decodeJwt(good()), { kid }));
    await assertRefused(await signedByUs(decodeJwt(good()), { kid: undefined }));
  });

  test("another type, such as an access token or a link's token", async () => {
    for (const typ of ["at+jwt", "logout+jwt", "secevent+jwt", undefined])
      await assertRefused(await signedByUs(decodeJwt(good()), { typ }));
  });

  test("a changed claim with the old signature", async () => {
    const [header, , signature] = good().split(".");
    const other = await market.createUser();
    for (const changed of [
      { jti: decodeJwt((await market.createSession(other.userId)).key).jti },
      { exp: 4_102_444_800 },
      { sub: "usr_01kf5v8q3xe8hb1d6c1m2k3n4p" },
      { role: "admin" },
    ])
      await assertRefused(`${header}.${json({ ...decodeJwt(good()), ...changed })}.${signature}`);
  });

  test("a missing or an additional claim", async () => {
    const claims = decodeJwt(good());
    for (const missing of ["jti", "exp", "iat", "sub"]) {
      const { [missing]: _, ...rest } = claims;
      await assertRefused(await signedByUs(rest));
    }
    for (const jti of [
      "",
      "x",
      claims.sub!,
      claims.jti!.replace("ses_", ""),
      "ses_01kf5v8q3xe8hb1d6c1m2k3n4p",
    ])
      await assertRefused(await signedByUs({ ...claims, jti }));
  });

  test("expired, issued in the future, or valid for over 30 days", async () => {
    const claims = decodeJwt(good());
    const now = Math.floor(market.service.ctx.now().getTime() / 1000);
    for (const wrong of [
      { exp: now },
      { exp: now - 1 },
      { iat: now + 60 },
      { iat: now - (30 * DAY_MS) / 1000 - 1, exp: now + 60 },
      { nbf: now + 60 },
    ])
      await assertRefused(await signedByUs({ ...claims, ...wrong }));
  });

  test("any changed character", async () => {
    const token = good();
    for (let at = 0; at < token.length; at += 7) {
      const letter = token[at] === "A" ? "B" : "A";
      if (token[at] === ".") continue;
      await assertRefused(token.slice(0, at) + letter + token.slice(at + 1));
    }
  });
});

test("an API key: only valid in the database that created it", async () => {
  const other = await openMarket();
  try {
    assertError(await other.as(member.key).get("/v1/products"), 401, "INVALID_API_KEY");
    assertError(await other.as(tokens["a session token"]!).get("/v1/products"), 401, "INVALID_API_KEY");
  } finally {
    await other.close();
  }
});
