import assert from "node:assert/strict";
import { request } from "node:http";
import { text } from "node:stream/consumers";
import { after, before, suite, test } from "node:test";
import { endpoints } from "@stoa/contract";
import { z } from "zod";
import { emailsTo, uniqueEmail } from "../../../test/emails.ts";
import { createProduct } from "../../../test/factories.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { createOAuthClient } from "../../../test/oauth.ts";
import { testPageTokens } from "../../core/test-page-tokens.ts";

interface RawReply {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
}

/** `fetch` cannot set Host. */
function ask(
  market: Market,
  path: string,
  headers: Record<string, string>,
  body?: object,
): Promise<RawReply> {
  const { hostname, port } = new URL(market.origin);
  return new Promise((resolve, reject) => {
    const method = body ? "POST" : "GET";
    const outgoing = request({ hostname, port, path, method, headers }, async (reply) => {
      resolve({ status: reply.statusCode!, headers: reply.headers, text: await text(reply) });
    });
    outgoing.on("error", reject).end(body && JSON.stringify(body));
  });
}

const TEST_PAGES = ["/dev/mail", "/dev/hooks", "/dev/hooks/mine", "/dev/payments"];

suite("a public address behind a proxy without forwarding headers", () => {
  let market: Market;
  let token: string;
  before(async () => {
    market = await openMarket({ config: { publicUrl: "https://stoa.example", metricsToken: "a-token" } });
    [token = ""] = testPageTokens(market.service.ctx.config);
  });
  after(() => market.close());
  const asLocal = (path: string, headers = {}) => ask(market, path, { host: "127.0.0.1:4000", ...headers });

  test("test pages by a loopback name: refused", async () => {
    for (const path of TEST_PAGES) {
      assert.equal((await asLocal(path)).status, 404, path);
      assert.equal((await ask(market, path, { host: "stoa.example" })).status, 404, path);
      assert.equal((await asLocal(`${path}?token=${"x".repeat(43)}`)).status, 404, path);
      assert.equal((await asLocal(path, { authorization: "Bearer x" })).status, 404, path);
    }
  });

  test("test pages: for a program with the token, and a browser that sent it once", async () => {
    const headers = { host: "stoa.example", accept: "application/json" };
    assert.equal((await ask(market, `/dev/mail?token=${token}`, headers)).status, 200);
    assert.equal(
      (await ask(market, "/dev/mail", { ...headers, authorization: `Bearer ${token}` })).status,
      200,
    );
    const first = await ask(market, `/dev/mail?token=${token}`, {
      host: "stoa.example",
      accept: "text/html",
    });
    assert.equal(first.status, 303);
    assert.equal(first.headers["location"], "/dev/mail");
    const [cookie] = first.headers["set-cookie"] as string[];
    assert.match(cookie!, /^__Host-test-pages=[\w-]{43};.* HttpOnly; Secure; SameSite=Lax/);
    const later = { host: "stoa.example", accept: "text/html", cookie: cookie!.split(";")[0]! };
    for (const path of TEST_PAGES) assert.ok((await ask(market, path, later)).status < 400, path);
  });

  test("metrics: with the token only", async () => {
    assert.equal((await asLocal("/metrics")).status, 404);
    assert.equal((await asLocal("/metrics", { authorization: "Bearer a-toke" })).status, 404);
    assert.equal((await asLocal("/metrics", { authorization: "Bearer a-token" })).status, 200);
  });

  test("every answer: has Strict-Transport-Security", async () => {
    for (const path of ["/healthz", "/v1/products", "/docs", "/auth/sign-in", "/nowhere", "/oauth/jwks"]) {
      const { headers } = await ask(market, path, { host: "stoa.example" });
      assert.equal(headers["strict-transport-security"], "max-age=31536000", path);
    }
  });

  test("metrics without a configured token: refused", async () => {
    const other = await openMarket({ config: { publicUrl: "https://stoa.example" } });
    const { status } = await ask(other, "/metrics", { host: "127.0.0.1:4000" });
    await other.close();
    assert.equal(status, 404);
  });
});

suite("a test service at a plain HTTP address of the network", () => {
  const ORIGIN = "http://stoa.lan:4000";
  let market: Market;
  before(async () => {
    market = await openMarket({ config: { publicUrl: ORIGIN } });
  });
  after(() => market.close());
  const asBrowser = (path: string, headers: Record<string, string> = {}, body?: object) =>
    ask(
      market,
      path,
      {
        host: "stoa.lan:4000",
        ...(body && { origin: ORIGIN, "content-type": "application/json" }),
        ...headers,
      },
      body,
    );
  /** The response's cookies as a Cookie header. A browser would drop Secure ones here. */
  function cookiesOf({ headers }: RawReply): string {
    const lines = (headers["set-cookie"] ?? []) as string[];
    for (const line of lines) assert.doesNotMatch(line, /^__|; Secure/i, line);
    return lines.map((line) => line.split(";")[0]).join("; ");
  }
  async function signIn(): Promise<string> {
    const email = uniqueEmail();
    const asked = await asBrowser("/api/auth/magic-link", {}, { email });
    assert.equal(asked.status, 200, asked.text);
    const [message] = await emailsTo(market, email);
    const token = /#token=([\w-]{43})/.exec(message!.text)![1];
    const verified = await asBrowser("/api/auth/verify", { cookie: cookiesOf(asked) }, { token });
    assert.equal(verified.status, 200, verified.text);
    return cookiesOf(verified);
  }

  test("buyers: are sent to the bank at its own address; the bank's desk needs the token", async () => {
    const [maker, buyer] = [await market.createUser(), await market.createUser()];
    const marketOptions = {
      productId: await createProduct(maker),
      paymentMethodId: "pm_test_requires_action",
    };
    const { url } = (await buyer.post("/v1/purchases", marketOptions)).body.data.nextAction;
    assert.ok(url.startsWith(`${ORIGIN}/dev/payments/authorize/`), url);
    const page = await asBrowser(new URL(url).pathname);
    assert.match(page.text, /Approve this payment/);
    // Such an address gets no Sec-Fetch-Site: the browser sends `Origin`, which the page's referrer policy allows.
    assert.equal(page.headers["referrer-policy"], "same-origin");
    assert.equal((await asBrowser("/dev/payments")).status, 404);
  });

  test("sign-in: uses cookies that browsers store without HTTPS", async () => {
    const cookie = await signIn();
    assert.match(cookie, /\bstoa-session=\S+/);
    const page = await asBrowser("/auth/signed-in", { cookie });
    assert.equal(page.status, 200, page.text);
    assert.equal((await asBrowser("/v1/account", { cookie })).status, 200);
    const out = await asBrowser("/api/auth/logout", { cookie }, {});
    assert.match(cookiesOf(out), /stoa-session=(;|$)/);
  });

  test("a visitor: recognized again", async () => {
    const cookie = cookiesOf(await asBrowser("/auth/sign-in", { accept: "text/html" }));
    assert.match(cookie, /\bstoa-guest=/);
    assert.equal((await asBrowser("/v1/products", { cookie })).status, 200);
  });

  test("an OAuth flow: reaches the consent page", async () => {
    const seller = await market.createUser();
    const { id, redirectUri } = await createOAuthClient(market, seller);
    const cookie = await signIn();
    const query = new URLSearchParams({
      client_id: id,
      response_type: "code",
      redirect_uri: redirectUri,
      scope: "products:read",
      code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
      code_challenge_method: "S256",
    });
    let at = `/oauth/authorize?${query}`;
    const jar = new Map<string, string>();
    const keep = (cookies: string) => {
      for (const pair of cookies.split("; ").filter(Boolean)) jar.set(pair.split("=")[0]!, pair);
    };
    keep(cookie);
    for (let hops = 0; hops < 5; hops++) {
      const page = await asBrowser(at, { cookie: [...jar.values()].join("; "), accept: "text/html" });
      keep(cookiesOf(page));
      if (page.status === 200) return assert.match(page.text, /value="allow"/);
      assert.ok(page.headers["location"], `${page.status} ${page.text}`);
      const { pathname, search } = new URL(String(page.headers["location"]), ORIGIN);
      at = pathname + search;
    }
    assert.fail(`no consent page, the last address is ${at}`);
  });

  test("the sign-in page and the log warn that others on the network can read along", async () => {
    assert.match((await asBrowser("/auth/sign-in")).text, /over plain HTTP/);
    assert.match(market.logs.join(""), /sign-in uses plain HTTP/);
  });

  test("another address: a page with the right one instead of the form, and one log line", async () => {
    for (const path of ["/auth/sign-in", "/auth/verify", "/auth/signed-in"]) {
      const { status, text } = await ask(market, path, { host: "192.168.1.5:4000", accept: "text/html" });
      assert.equal(status, 400, path);
      assert.match(text, /192\.168\.1\.5:4000.*<a href="http:\/\/stoa\.lan:4000\/auth\/sign-in"/s);
      assert.match(text, /STOA_PUBLIC_URL/);
    }
    const logged = market.logs.filter((line) => line.includes("192.168.1.5:4000"));
    assert.equal(logged.length, 1);
  });

  test("a proxy: may use any host name", async () => {
    const headers = { host: "app:4000", "x-forwarded-for": "192.168.1.7" };
    assert.equal((await ask(market, "/auth/sign-in", headers)).status, 200);
  });

  test("answers: no Strict-Transport-Security", async () => {
    assert.equal((await asBrowser("/healthz")).headers["strict-transport-security"], undefined);
  });
});

suite("a service without a public address", () => {
  for (const [proxy, headers] of [
    ["adds X-Forwarded-Host", { host: "127.0.0.1:4000", "x-forwarded-host": "stoa.example" }],
    ["passes the browser's Host", { host: "stoa.example" }],
    ["passes the browser's Origin alone", { host: "127.0.0.1:4000", origin: "https://stoa.example" }],
  ] as const)
    test(`a proxy on the same machine ${proxy}: one warning names STOA_PUBLIC_URL`, async (t) => {
      const market = await openMarket();
      t.after(() => market.close());
      const warnings = () =>
        market.logs.filter((line) => /"level":40.*STOA_PUBLIC_URL is not set/.test(line));
      await ask(market, "/healthz", { host: "127.0.0.1:4000", origin: "http://localhost:3000" });
      assert.equal(warnings().length, 0, "a person at the machine");
      for (const _ of [1, 2]) await ask(market, "/healthz", headers);
      assert.equal(warnings().length, 1);
      assert.match(warnings()[0]!, /stoa\.example/);
    });
});

suite("answers that may contain a secret: Cache-Control no-store", () => {
  let market: Market;
  let member: Client;
  let session: Client;
  before(async () => {
    market = await openMarket();
    member = await market.createUser();
    session = await market.createSession(member.userId);
  });
  after(() => market.close());
  const SECRET = /^(client)?(secret|key|token|sessionToken|codes|challenge|otpauthUri|qrCode)$/i;
  const showing = endpoints.filter(({ base, showsSecret }) => showsSecret || base === "/api/auth");

  /** The names of all fields of a response schema, at any depth. */
  function namesIn(schema: unknown): string[] {
    if (typeof schema !== "object" || schema === null) return [];
    const { properties = {} } = schema as { properties?: object };
    return [...Object.keys(properties), ...Object.values(schema).flatMap(namesIn)];
  }

  test("every endpoint with a secret field in its answer: listed here", () => {
    const odd = endpoints.filter((endpoint) => {
      // The `key` of a group of sales is no secret.
      if (showing.includes(endpoint) || endpoint.tag === "analytics") return false;
      const { response } = endpoint;
      if (response.kind === "file") return false;
      const shown = response.kind === "list" ? response.item : response.data;
      const schema = z.toJSONSchema(shown, { io: "output", unrepresentable: "any" });
      return namesIn(schema).some((name) => SECRET.test(name));
    });
    assert.deepEqual(
      odd.map(({ name }) => name),
      [],
    );
  });

  for (const { name, method, base, path } of showing)
    test(`${name}: refused`, async () => {
      const reply = await session.request(method, base + path.replace(/:\w+/g, "x"), {
        json: method === "GET" ? undefined : { x: 1 },
      });
      assert.ok(reply.status >= 400, reply.text);
      assert.equal(reply.headers.get("cache-control"), "no-store", reply.text);
    });

  test("a new API key, a webhook's secret and an OAuth client's secret", async () => {
    const replies = [
      await session.post("/v1/api-keys", { name: "Mine", permissions: { "products:read": true } }),
      await member.post("/v1/webhooks", { url: "http://127.0.0.1:9/" }),
      await session.post("/v1/account/callback-secret"),
      await session.post("/v1/account/two-factor"),
    ];
    for (const reply of replies) {
      assert.ok(reply.status < 300, reply.text);
      assert.equal(reply.headers.get("cache-control"), "no-store");
    }
  });
});
