import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { get, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http";
import { syncBuiltinESMExports } from "node:module";
import { connect } from "node:net";
import { buffer } from "node:stream/consumers";
import { after, before, suite, test } from "node:test";
import zlib, { brotliDecompressSync, gunzipSync } from "node:zlib";
import { errorCatalogue, errorCodes } from "@stoa/contract";
import pg from "pg";
import { createProduct } from "../../../test/factories.ts";
import { sampleOf } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { becomes, until } from "../../../test/until.ts";
import { assetPath } from "./assets.ts";
import { StaticContent } from "./static-content.ts";

let market: Market;
let nobody: Client;
before(async () => {
  market = await openMarket();
  nobody = market.as(null);
});
after(() => market.close());

suite("health", () => {
  test("/healthz: 200 while the process runs, without credentials", async () => {
    const reply = await nobody.get("/healthz");
    assert.deepEqual([reply.status, reply.body], [200, { status: "ok" }]);
  });

  test("/readyz: 200 while the database is available and migrated", async () => {
    const reply = await nobody.get("/readyz");
    assert.deepEqual([reply.status, reply.body], [200, { status: "ready", problems: [], warnings: [] }]);
  });

  test("/readyz: 503 with the reason when a migration is missing; /healthz stays 200", async (t) => {
    const unready = await openMarket();
    t.after(() => unready.close());
    await unready.query(
      "delete from schema_migrations where ctid = (select max(ctid) from schema_migrations)",
    );
    const reply = await unready.as(null).get("/readyz");
    assert.equal(reply.status, 503);
    assert.equal(reply.body.status, "not ready");
    assert.deepEqual(reply.body.problems, ["the database lacks migrations"]);
    assert.equal((await unready.as(null).get("/healthz")).status, 200);
  });
});

/** A trigger raises this PostgreSQL error when a product is created. */
const refuseProducts = (shop: Market, code: string) =>
  shop.query(
    `create or replace function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused' using errcode = '${code}'; end $$;
     create or replace trigger refuse before insert on products for each row execute function refuse()`,
  );
const postProduct = (by: Client) =>
  by.post("/v1/products", { type: "PROMPT", title: "One", price: 1, content: "Say {{word}}." });

suite("a database that refuses writes", () => {
  test("POST: transient PostgreSQL errors, 503 with Retry-After; /readyz stays 200 while other writes succeed", async (t) => {
    const shop = await openMarket();
    t.after(() => shop.close());
    const member = await shop.createUser();
    for (const code of ["25006", "53100", "53200", "57P03", "08006", "40001", "40P01", "55P03"]) {
      await refuseProducts(shop, code);
      const reply = await postProduct(member);
      assertError(reply, 503, "SERVICE_UNAVAILABLE");
      assert.ok(Number(reply.headers.get("retry-after")) > 0, code);
    }
    await refuseProducts(shop, "53100");
    await postProduct(member);
    assert.equal((await shop.as(null).get("/readyz")).status, 200);
  });

  test("/readyz: full disk of the database, 503 until a write succeeds again", async (t) => {
    const shop = await openMarket();
    t.after(() => shop.close());
    const readiness = async () => {
      const { status, body } = await shop.as(null).get("/readyz");
      return [status, ...body.problems];
    };
    // A table that needs space fails, as on a full disk.
    await shop.query(
      `create function refuse_table() returns event_trigger language plpgsql as $$ begin raise exception 'refused' using errcode = '53100'; end $$;
       create event trigger refuse_table on ddl_command_start when tag in ('CREATE TABLE AS') execute function refuse_table()`,
    );
    assert.deepEqual(await readiness(), [200]);
    await refuseProducts(shop, "53100");
    await postProduct(await shop.createUser());
    assert.deepEqual(await readiness(), [503, "the disk of the database is full"]);
    shop.clock.forward(60_000);
    assert.deepEqual(await readiness(), [503, "the disk of the database is full"]);
    await shop.query("drop event trigger refuse_table");
    assert.deepEqual(await readiness(), [200]);
  });

  test("/readyz: database that became read-only, 503 until it takes writes", async (t) => {
    const shop = await openMarket();
    t.after(() => shop.close());
    const operator = new pg.Client({ connectionString: shop.target });
    await operator.connect();
    await operator.query("set default_transaction_read_only = off");
    const { pathname } = new URL(shop.target);
    for (const [value, status] of [
      ["on", 503],
      ["off", 200],
    ] as const) {
      await operator.query(
        `alter database ${pathname.slice(1)} set default_transaction_read_only = ${value}`,
      );
      await operator.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'stoa' and datname = current_database()",
      );
      // Until PostgreSQL has closed the connections and the pool has noticed.
      const reply = await becomes(
        () => shop.as(null).get("/readyz"),
        ({ status: found, body }) =>
          found === status && !body.problems.includes("the database does not answer"),
      );
      assert.deepEqual(reply.body.problems, value === "on" ? ["the database is read-only"] : []);
    }
    await operator.end();
  });

  test("POST: database away while the body arrives, 503", async (t) => {
    const shop = await openMarket();
    t.after(() => shop.close());
    const { key } = await shop.createUser();
    const away = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
    const connecting = t.mock.method(shop.service.ctx.pool, "connect", (callback?: (error: Error) => void) =>
      callback ? callback(away) : Promise.reject(away),
    );
    assert.equal(await halfPost(shop, key), "HTTP/1.1 503 Service Unavailable");
    connecting.mock.restore();
  });
});

/** Sends the headers of a POST and a part of its body. Returns the status line. */
async function halfPost(shop: Market, key: string): Promise<string> {
  const { hostname, port } = new URL(shop.origin);
  const socket = connect(Number(port), hostname);
  socket.write(
    `POST /v1/api-keys HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{`,
  );
  const [bytes] = await once(socket, "data");
  socket.destroy();
  return String(bytes).split("\r\n")[0]!;
}

test("Redis is away at the start: the log names REDIS_URL, and the service is ready", async (t) => {
  const shop = await openMarket({ config: { redisUrl: "redis://127.0.0.1:1" } });
  t.after(() => shop.close());
  await until("the log line", () =>
    shop.logs.find((line) => /"level":50.*ECONNREFUSED.*REDIS_URL: Redis does not answer/.test(line)),
  );
  assert.equal((await shop.as(null).get("/readyz")).status, 200);
  assert.equal((await (await shop.createUser()).get("/v1/products")).status, 200);
});

suite("an end of the service", () => {
  test("/readyz is 503 while the listener still answers, then requests of open connections get their answers", async (t) => {
    const draining = Promise.withResolvers<void>();
    const shop = await openMarket({ drain: () => draining.promise });
    const closed = shop.close();
    t.after(() => {
      draining.resolve();
      return closed;
    });
    const reply = await shop.as(null).get("/readyz");
    assert.deepEqual([reply.status, reply.body.problems], [503, ["the service is ending"]]);
    assert.equal((await shop.as(null).get("/healthz")).status, 200);
    draining.resolve();
  });
});

suite("/metrics", () => {
  test("on the same machine: request durations by route, never by path", async () => {
    const member = await market.createUser();
    const productId = await createProduct(member);
    await member.get(`/v1/products/${productId}?api_key=${member.key}`);
    const reply = await nobody.get("/metrics");
    assert.equal(reply.status, 200);
    assert.match(reply.headers.get("content-type")!, /^text\/plain; version=0\.0\.4/);
    assert.match(
      reply.text,
      /http_request_duration_seconds_count\{method="GET",route="\/v1\/products\/:productId",status="200"\} 1\n/,
    );
    assert.ok(!reply.text.includes(productId) && !reply.text.includes("stoa_test_"));
  });

  test("unknown paths: one label, so that a scanner adds no series", async () => {
    for (const path of ["/a", "/b", "/wp-login.php"]) await nobody.get(path);
    const { text } = await nobody.get("/metrics");
    assert.doesNotMatch(text, /wp-login/);
    assert.match(text, /_count\{method="GET",route="unknown",status="404"\} 3\n/);
  });

  test("through a proxy: refused", async () => {
    for (const header of ["x-forwarded-for", "forwarded", "x-real-ip", "via"])
      for (const value of ["203.0.113.7", "127.0.0.1", "::1"])
        assertError(await nobody.get("/metrics", { [header]: value }), 404, "NOT_FOUND");
  });

  test("another host name for this machine: refused", async () => {
    const { port } = new URL(market.origin);
    const request = get({
      host: "127.0.0.1",
      port,
      path: "/metrics",
      headers: { host: `evil.example:${port}` },
    });
    const [response] = await once(request, "response");
    assert.equal(response.statusCode, 404);
    response.resume();
  });

  test("with a configured token: required from everywhere", async (t) => {
    const guarded = await openMarket({ config: { metricsToken: "figures-for-me" } });
    t.after(() => guarded.close());
    const ask = (headers: Record<string, string>) => guarded.as(null).get("/metrics", headers);
    assertError(await ask({}), 404, "NOT_FOUND");
    for (const wrong of [
      "Bearer",
      "Bearer figures",
      "figures-for-me",
      "Bearer figures-for-me2",
      "Basic figures-for-me",
    ]) {
      assertError(await ask({ authorization: wrong }), 404, "NOT_FOUND");
    }
    const authorization = "Bearer figures-for-me";
    assert.equal((await ask({ authorization })).status, 200);
    assert.equal((await ask({ authorization, "x-forwarded-for": "203.0.113.7" })).status, 200);
  });
});

/** Like `fetch`, but returns the body as received. */
const send = (path: string, headers: OutgoingHttpHeaders) =>
  new Promise<{ status: number; headers: IncomingHttpHeaders; bytes: Buffer }>((resolve, reject) => {
    get(market.origin + path, { headers }, (response) => {
      const { statusCode, headers: answered } = response;
      buffer(response).then((bytes) => resolve({ status: statusCode!, headers: answered, bytes }), reject);
    }).on("error", reject);
  });

suite("the API reference", () => {
  const guides = readdirSync(new URL("../../../../docs/guides/", import.meta.url)).map((file) =>
    file.slice(0, -3),
  );
  const pages = ["/docs", "/docs/errors", "/docs/guides", "/docs/guides/webhooks", "/docs/decisions"];

  for (const path of pages) {
    test(`${path}: only scripts and styles of this origin, none inline`, async () => {
      const reply = await nobody.get(path);
      assert.equal(reply.status, 200);
      assert.equal(reply.headers.get("content-type"), "text/html; charset=utf-8");
      const policy = reply.headers.get("content-security-policy")!;
      assert.match(policy, /default-src 'none'/);
      assert.match(policy, /script-src 'self'(;|$)/);
      assert.match(policy, /frame-ancestors 'none'/);
      assert.match(policy, /base-uri 'none'/);
      assert.match(policy, /form-action 'none'/);
      assert.doesNotMatch(policy, /unsafe|\*|https?:/);
      assert.doesNotMatch(reply.text, /<script(?! src=)|<style|\son\w+=|javascript:/i);
    });

    test(`${path}: references no other origin, and each file exists`, async () => {
      const { text } = await nobody.get(path);
      // URLs in examples are text; none is loaded or linked.
      assert.doesNotMatch(text, /(?:src|<link[^>]* href)="(https?:)?\/\/\w/);
      const named = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, target]) => target!);
      const files = named.filter((target) => !/^(data:|#|https:)/.test(target));
      assert.ok(files.length >= 3);
      for (const file of sampleOf(files)) {
        const { status, headers } = await nobody.get(file);
        // A page of members redirects to sign-in.
        if (file === "/settings/api") assert.match(headers.get("location")!, /^\/auth\/sign-in/);
        else assert.equal(status, 200, file);
      }
    });
  }

  test("explains every error code with its status", async () => {
    const { text } = await nobody.get("/docs/errors");
    for (const code of errorCodes) {
      assert.ok(text.includes(`<tr id="${code}"><td>${errorCatalogue[code].status}</td>`), code);
    }
  });

  test("has one remedy for each error code", async () => {
    const { text } = await nobody.get("/docs/errors");
    const rows = [...text.matchAll(/<tr id="(\w+)">(.*?)<\/tr>/g)];
    assert.equal(rows.length, errorCodes.length);
    for (const [, code, row] of rows) assert.match(row!, /(<td>.+?<\/td>){3}<td>[^<].+\.<\/td>$/, code);
  });

  /** The guides link to the same pages. */
  const read = new Map<string, Promise<Reply>>();
  const readPage = (path: string): Promise<Reply> => {
    const page = read.get(path) ?? nobody.get(path);
    read.set(path, page);
    return page;
  };

  for (const guide of guides) {
    test(`/docs/guides/${guide}: rendered, and each link leads to a page and a heading`, async () => {
      const { status, text } = await readPage(`/docs/guides/${guide}`);
      assert.equal(status, 200);
      assert.match(text, /<h1 id="[\w-]+">/);
      assert.doesNotMatch(text, /href="[^"]*\.md/);
      const main = text.slice(text.indexOf("<main"));
      for (const [, href] of main.matchAll(/href="([^"]+)"/g)) {
        if (/^https?:/.test(href!)) continue;
        const [path, anchor] = href!.split("#");
        const target = path ? await readPage(path) : { status: 200, text };
        assert.equal(target.status, 200, href);
        if (anchor) assert.ok(target.text.includes(` id="${anchor}"`), href);
      }
    });
  }

  test("/docs/guides: lists each guide with title and summary", async () => {
    const { text } = await nobody.get("/docs/guides");
    for (const guide of guides) assert.ok(text.includes(`<h2><a href="/docs/guides/${guide}">`), guide);
    assert.equal([...text.matchAll(/<li><h2>.*?<\/h2><p>/g)].length, guides.length);
  });

  test("/docs/guides/{name}: 404 for an unknown name in any spelling", async () => {
    for (const name of ["none", "..%2farchitecture", "__proto__", "webhooks.md", "%00"])
      assert.equal((await nobody.get(`/docs/guides/${name}`)).status, 404, name);
  });

  test("StaticContent: a failed compression is tried again", async (t) => {
    const fails = t.mock.method(zlib, "brotliCompress", (...given: unknown[]) =>
      (given.at(-1) as (error: Error) => void)(new Error("out of memory")),
    );
    syncBuiltinESMExports();
    const content = new StaticContent("x".repeat(2_000), "text/plain");
    await assert.rejects(content.encoded("br"), /out of memory/);
    fails.mock.restore();
    syncBuiltinESMExports();
    assert.equal(String(brotliDecompressSync(await content.encoded("br"))), "x".repeat(2_000));
  });

  for (const path of [
    "/docs/swagger-ui.js",
    "/docs/swagger-ui.css",
    "/v1/openapi.json",
    "/docs/guides/webhooks",
    "/docs/errors",
    assetPath("stoa.css"),
  ]) {
    test(`${path}: compressed as the client accepts, with an ETag for each encoding`, async () => {
      const ask = (encoding: string, more = {}) => send(path, { "accept-encoding": encoding, ...more });
      const plain = await ask("identity");
      assert.equal(plain.headers["content-encoding"], undefined);
      const etags = new Set([plain.headers.etag]);
      for (const [accepted, encoding, decompress] of [
        ["gzip, deflate, br", "br", brotliDecompressSync],
        ["gzip", "gzip", gunzipSync],
        ["br;q=0, gzip", "gzip", gunzipSync],
      ] as const) {
        const reply = await ask(accepted);
        assert.deepEqual(
          [reply.headers["content-encoding"], reply.headers.vary?.includes("Accept-Encoding")],
          [encoding, true],
        );
        assert.ok(reply.bytes.length < plain.bytes.length / 2);
        assert.deepEqual(decompress(reply.bytes), plain.bytes);
        etags.add(reply.headers.etag);
        assert.equal((await ask(accepted, { "if-none-match": reply.headers.etag })).status, 304);
      }
      assert.equal(etags.size, 3);
    });
  }

  for (const [file, type] of [
    ["/docs/docs.js", "text/javascript"],
    ["/docs/docs.css", "text/css"],
    ["/docs/swagger-ui.js", "text/javascript"],
    ["/docs/swagger-ui.css", "text/css"],
  ] as const) {
    test(`${file}: ${type}, revalidated by its ETag`, async () => {
      const reply = await nobody.get(file);
      assert.equal(reply.headers.get("content-type"), `${type}; charset=utf-8`);
      assert.equal(reply.headers.get("cache-control"), "no-cache");
      const again = await nobody.get(file, { "if-none-match": reply.headers.get("etag")! });
      assert.deepEqual([again.status, again.text], [304, ""]);
      assert.equal((await nobody.get(file, { "if-none-match": '"other"' })).status, 200);
    });
  }
});

suite("an error for a browser", () => {
  const inBrowser = { accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" };

  for (const path of ["/nothing", "/docs/nothing", "/docs/guides/nothing", "/auth/nothing", "/favicon.ico"]) {
    test(`${path}: a page for a browser, the envelope for a program`, async () => {
      const page = await nobody.get(path, inBrowser);
      assert.deepEqual([page.status, page.headers.get("content-type")], [404, "text/html; charset=utf-8"]);
      assert.match(page.text, /This page does not exist/);
      assertError(await nobody.get(path, { accept: "*/*" }), 404, "NOT_FOUND");
      assertError(await nobody.get(path), 404, "NOT_FOUND");
    });
  }

  test("below /v1, /api, /oauth and /mcp: always the envelope", async () => {
    for (const path of ["/v1/nothing", "/v1/products", "/api/auth/nothing", "/mcp"])
      assert.match(
        (await nobody.get(path, inBrowser)).headers.get("content-type")!,
        /^application\/json/,
        path,
      );
  });

  test("/auth: redirects to the sign-in page", async () => {
    const reply = await nobody.get("/auth/", inBrowser);
    assert.deepEqual([reply.status, reply.headers.get("location")], [302, "/auth/signed-in"]);
  });
});

test("a worker without the API: serves health and metrics, no pages", async (t) => {
  const worker = await openMarket({ config: { roles: { api: false, worker: true } } });
  t.after(() => worker.close());
  const ask = worker.as(null);
  for (const path of ["/healthz", "/readyz", "/metrics"])
    assert.equal((await ask.get(path)).status, 200, path);
  for (const path of ["/auth/sign-in", "/api/auth/github", "/oauth/jwks", "/dev/mail"])
    assertError(await ask.get(path), 404, "NOT_FOUND");
});
