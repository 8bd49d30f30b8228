import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { until } from "../../../test/until.ts";
import { type EgressGuard, findUrlProblem, parseAllowedTargets } from "../../core/config/allowed-targets.ts";
import {
  BlockedTarget,
  createGuardedFetch,
  type FetchLimits,
  TargetFailure,
  TargetTimeout,
} from "./guarded-fetch.ts";

/** Deadlines that no pause of the machine reaches. */
const generous: FetchLimits = {
  connectMs: 300_000,
  headersMs: 300_000,
  bodyIdleMs: 300_000,
  maxResponseBytes: 1_000_000,
};
const PUBLIC = "8.8.8.8";

function guardWith(allowed: string, more: Partial<EgressGuard> = {}): EgressGuard {
  const resolve = async () => ["127.0.0.1"];
  return { allowed: parseAllowedTargets(allowed), own: () => null, ownPathsAllowed: [], resolve, ...more };
}

function fetchWith(t: TestContext, guard: EgressGuard, limits: Partial<FetchLimits> = {}) {
  const safe = createGuardedFetch(guard, { ...generous, ...limits });
  t.after(() => safe.close());
  return safe.fetch;
}

/** A server on 127.0.0.1; `requests` contains the requested paths. */
async function serve(t: TestContext, handler: RequestListener) {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(request.url ?? "");
    handler(request, response);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return { port, url: `http://127.0.0.1:${port}`, requests };
}

/** A TCP server without TLS and HTTP that collects what it receives. */
async function listen(t: TestContext) {
  const received: Buffer[] = [];
  const server = createTcpServer((socket) => {
    socket.on("data", (data) => received.push(data)).on("error", () => {});
    t.after(() => socket.destroy());
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => server.close());
  return { port: (server.address() as AddressInfo).port, received };
}

/** Resolves when the client has received what the server sent: loopback takes turns of the event loop, and no time. */
async function deliver(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await nextTurn();
}

/**
 * The timers that `work` starts are due after `ms`, without waiting for it. Undici's timers of idle connections, which all
 * agents share, must stay real, so `work` must not read a whole response.
 */
async function passTime<T>(t: TestContext, ms: number, work: () => Promise<T>): Promise<T> {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const result = await work();
  await deliver();
  t.mock.timers.tick(ms);
  t.mock.timers.reset();
  return result;
}

/** Calls a server that never answers the TLS handshake until the call has had its time to connect. Resolves after the handshake began. */
async function connectInVain(
  t: TestContext,
  call: () => Promise<Response>,
  received: Buffer[],
): Promise<void> {
  const { ended } = await passTime(t, generous.connectMs, async () => {
    const ended = assert.rejects(call(), timedOut("connect"));
    while (received.length === 0) await nextTurn();
    return { ended };
  });
  await ended;
}

const blocked = (reason: RegExp) => (error: unknown) =>
  error instanceof BlockedTarget && reason.test(error.message);
const timedOut = (phase: string) => (error: unknown) =>
  error instanceof TargetTimeout && error.phase === phase;
const failed = (code: string) => (error: unknown) => error instanceof TargetFailure && error.code === code;

test("public https address: is allowed on port 443 and from port 1024", () => {
  for (const url of ["https://api.example.com/v1", `https://${PUBLIC}/`, "https://example.com.:8443/a?b=c"]) {
    assert.equal(findUrlProblem(guardWith(""), url), null, url);
  }
  for (const port of [80, 22, 25, 1023, 5432, 6379]) {
    assert.match(findUrlProblem(guardWith(""), `https://example.com:${port}/`) ?? "", /port/);
  }
});

test("other addresses: are refused, each with its reason", () => {
  const reasons: [string, RegExp][] = [
    ["not a url", /not a valid/],
    ["ftp://example.com/", /not a valid/],
    ["http://example.com/", /https/],
    ["https://user@example.com/", /user name or password/],
    ["https://:secret@example.com/", /user name or password/],
    [`https://example.com/${"a".repeat(2048)}`, /2048/],
    ["https://intranet/", /full public host name/],
    ["https://printer.local/", /full public host name/],
    ["https://vault.internal./", /full public host name/],
    ["https://a.localhost/", /full public host name/],
    ["https://example.com../", /full public host name/],
    ["https://localhost/", /private/],
    ["https://168.63.129.16/", /private/],
    ["https://[2606:4700::1111]/", /IPv4/],
  ];
  for (const [url, reason] of reasons) assert.match(findUrlProblem(guardWith(""), url) ?? "", reason, url);
});

const octet = fc.integer({ min: 0, max: 255 });
const privateAddress = fc.oneof(
  fc.tuple(fc.constantFrom(0, 10, 127, 224, 255), octet, octet, octet),
  fc.tuple(fc.constant(100), fc.integer({ min: 64, max: 127 }), octet, octet),
  fc.tuple(fc.constant(169), fc.constant(254), octet, octet),
  fc.tuple(fc.constant(172), fc.integer({ min: 16, max: 31 }), octet, octet),
  fc.tuple(fc.constant(192), fc.constant(168), octet, octet),
);
const hex = (number: number) => `0x${number.toString(16)}`;
const octal = (number: number) => `0${number.toString(8)}`;

function literalForms([a, b, c, d]: [number, number, number, number]): string[] {
  const decimal = ((a * 256 + b) * 256 + c) * 256 + d;
  const high = (a * 256 + b).toString(16);
  const low = (c * 256 + d).toString(16);
  const dotted = `${a}.${b}.${c}.${d}`;
  const numbers = [
    decimal,
    hex(decimal),
    octal(decimal),
    `${a}.${decimal % 2 ** 24}`,
    `${hex(a)}.${b}.${octal(c * 256 + d)}`,
  ];
  const parts = [[a, b, c, d].map(hex).join("."), [a, b, c, d].map(octal).join("."), dotted, `${dotted}.`];
  const embedded = [`::ffff:${dotted}`, `::ffff:${high}:${low}`, `::${dotted}`, `64:ff9b::${dotted}`];
  return [...numbers, ...parts, ...[...embedded, `2002:${high}:${low}::1`].map((form) => `[${form}]`)].map(
    String,
  );
}

test("literal forms of private addresses: are refused", () => {
  fc.assert(
    fc.property(privateAddress, (address) => {
      for (const form of literalForms(address)) {
        assert.match(findUrlProblem(guardWith(""), `https://${form}:8443/`) ?? "", /private|IPv4/, form);
      }
    }),
  );
  for (const form of ["0", "[::]", "[::1]", "[fe80::1]", "[fd00::1]", "[fec0::1]", "①②⑦.1"]) {
    assert.match(findUrlProblem(guardWith(""), `https://${form}/`) ?? "", /private/, form);
  }
});

test("literal forms of loopback: reach no server", async (t) => {
  const server = await serve(t, (_, response) => response.end("secret"));
  const fetch = fetchWith(t, guardWith(""));
  for (const form of [...literalForms([127, 0, 0, 1]), "0", "[::1]", "localhost", "localhost."]) {
    for (const scheme of ["http", "https"]) {
      await assert.rejects(fetch(`${scheme}://${form}:${server.port}/`), BlockedTarget, form);
    }
  }
  assert.deepEqual(server.requests, []);
});

test("allowedTargets: hosts, host:port, addresses, CIDRs and loopback", () => {
  const guard = guardWith(
    "ollama, localhost:11434, 10.1.2.3:9000, 192.168.0.0/16, fd00::/8, [::1]:81, loopback:5000",
  );
  const allowed = [
    "ollama:80",
    "localhost:11434",
    "10.1.2.3:9000",
    "192.168.7.7:22",
    "[fd00::5]:80",
    "[::1]:81",
  ];
  for (const host of [...allowed, "OLLAMA.:1", "127.9.9.9:5000", "0x7f.1:5000"]) {
    assert.equal(findUrlProblem(guard, `http://${host}/`), null, host);
  }
  for (const host of [
    "localhost:80",
    "10.1.2.3:80",
    "10.1.2.4:9000",
    "127.0.0.1:80",
    "[::1]:82",
    "api.ollama:80",
  ]) {
    assert.notEqual(findUrlProblem(guard, `http://${host}/`), null, host);
  }
});

test("allowedTargets with an invalid entry: the error names it", () => {
  assert.deepEqual(parseAllowedTargets(" , "), []);
  const wrong = [
    "http://ollama",
    "10/8",
    "10.0.0.0/33",
    "a b",
    "a@b",
    "*.corp",
    "999.1.1.1",
    "host:0",
    "host:65536",
    "a..b",
  ];
  for (const entry of wrong) {
    const isNamed = (error: Error) => error.message.includes(`"${entry}"`);
    assert.throws(() => parseAllowedTargets(`ollama, ${entry}`), isNamed, entry);
  }
});

test("name with a private address: is refused without showing the address", async (t) => {
  const fetch = fetchWith(t, guardWith("", { resolve: async () => ["10.11.12.13"] }));
  await assert.rejects(fetch("https://inside.example.com/"), (error: Error) => {
    assert.doesNotMatch(error.message, /10\.11/);
    return error instanceof BlockedTarget;
  });
});

test("one private address among public ones: is refused", async (t) => {
  for (const answers of [
    [PUBLIC, "169.254.169.254"],
    [PUBLIC, "::1"],
    ["::ffff:10.0.0.1", PUBLIC],
    [PUBLIC, "junk"],
  ]) {
    const fetch = fetchWith(t, guardWith("", { resolve: async () => answers }));
    await assert.rejects(fetch("https://mixed.example.com/"), BlockedTarget, answers.join());
  }
});

test("rebinding DNS: a name is resolved once for each connection", async (t) => {
  const { port, received } = await listen(t);
  const answers = ["127.0.0.1", "10.0.0.1"];
  const fetch = fetchWith(t, guardWith("127.0.0.1", { resolve: async () => answers.splice(0, 1) }));
  await connectInVain(t, () => fetch(`https://rebind.example.com:${port}/`), received);
  assert.deepEqual(answers, ["10.0.0.1"]);
  assert.equal(received.length, 1);
  await assert.rejects(fetch(`https://rebind.example.com:${port}/`), blocked(/private/));
});

test("address reported by the socket: is checked again", {
  skip: process.platform !== "linux",
}, async (t) => {
  const server = await serve(t, (_, response) => response.end());
  const fetch = fetchWith(t, guardWith("0.0.0.0"));
  await assert.rejects(fetch(`http://0.0.0.0:${server.port}/`), blocked(/private/));
  assert.deepEqual(server.requests, []);
});

test("TLS: sends the host name, not the address", async (t) => {
  const { port, received } = await listen(t);
  const fetch = fetchWith(t, guardWith("127.0.0.1"));
  await connectInVain(t, () => fetch(`https://models.example.com.:${port}/`), received);
  assert.match(Buffer.concat(received).toString("latin1"), /models\.example\.com[^.]/);
});

test("allowed target: is called over http with name, body and headers, without an encoding", async (t) => {
  const server = await serve(t, async (request, response) => {
    const { host, "accept-encoding": encoding, "x-key": key, "content-length": length } = request.headers;
    const body = (await request.setEncoding("utf8").toArray()).join("");
    response.setHeader("set-cookie", ["a=1", "b=2"]).writeHead(201);
    response.end(
      JSON.stringify({ method: request.method, url: request.url, host, encoding, key, length, body }),
    );
  });
  const fetch = fetchWith(t, guardWith("ollama"));
  const headers = { "x-key": "k", host: "evil.example.com", "accept-encoding": "gzip" };
  const url = `http://ollama:${server.port}/v1?a=b#c`;
  const response = await fetch(new URL(url), { method: "POST", body: '{"ü":1}', headers });
  assert.ok(response instanceof Response);
  assert.equal(response.status, 201);
  assert.deepEqual(response.headers.getSetCookie(), ["a=1", "b=2"]);
  const host = `ollama:${server.port}`;
  const expected = {
    method: "POST",
    url: "/v1?a=b",
    host,
    encoding: "identity",
    key: "k",
    length: "8",
    body: '{"ü":1}',
  };
  assert.deepEqual(await response.json(), expected);
});

test("body: streams its first chunk before the second is sent", async (t) => {
  let finish = () => {};
  const server = await serve(t, (_, response) => {
    response.write("one");
    finish = () => void response.end("two");
  });
  const fetch = fetchWith(t, guardWith("loopback"));
  const response = await fetch(new Request(`${server.url}/stream`));
  const decoder = new TextDecoder();
  const chunks: string[] = [];
  for await (const chunk of response.body!) {
    chunks.push(decoder.decode(chunk));
    finish();
  }
  assert.deepEqual(chunks, ["one", "two"]);
});

test("slow reader of a large body: gets all of it, and its pauses do not count", async (t) => {
  const large = Buffer.alloc(900_000, "abcdefg");
  const server = await serve(t, (_, response) => response.end(large));
  const fetch = fetchWith(t, guardWith("loopback"), { bodyIdleMs: 300 });
  const response = await passTime(t, 600, () => fetch(server.url));
  assert.ok(large.equals(await response.bytes()));
});

test("postText, slow reader of short chunks: gets all of them, and its pauses do not count", async (t) => {
  const finish = Promise.withResolvers<void>();
  const server = await serve(t, (_, response) => {
    response.write("one");
    response.write("two");
    void finish.promise.then(() => response.end("three"));
  });
  const safe = createGuardedFetch(guardWith("loopback"), { ...generous, bodyIdleMs: 50 });
  t.after(() => safe.close());
  const post = { headers: {}, body: "", signal: new AbortController().signal };
  const chunks: string[] = [];
  const reader = await passTime(t, 120, async () => {
    const { body } = await safe.postText(server.url, post);
    const reader = body![Symbol.asyncIterator]();
    chunks.push(String(Buffer.from((await reader.next()).value)));
    return reader;
  });
  finish.resolve();
  for (let next = await reader.next(); !next.done; next = await reader.next())
    chunks.push(String(Buffer.from(next.value)));
  assert.equal(chunks.join(" "), "one two three");
});

test("responses without a body: keep their status, and the connection is reused", async (t) => {
  const server = await serve(t, (request, response) =>
    response.writeHead(Number(request.url?.slice(1))).end(),
  );
  const fetch = fetchWith(t, guardWith("loopback"));
  for (const status of [204, 205, 304, 404, 500]) {
    const response = await fetch(`${server.url}/${status}`);
    assert.equal(response.status, status);
    assert.equal(await response.text(), "");
  }
});

test("body after a status without one: ends the connection when it is silent or too large", async (t) => {
  for (const [size, limits] of [
    [1, { bodyIdleMs: 30 }],
    [100_000, { maxResponseBytes: 50_000 }],
  ] as const) {
    let isClosed = false;
    const server = await serve(t, (_, response) => {
      response.writeHead(205).write("x".repeat(size));
      response.on("close", () => (isClosed = true));
    });
    const fetch = fetchWith(t, guardWith("loopback"), limits);
    const response = await passTime(t, 30, () => fetch(server.url));
    assert.equal(response.body, null);
    await until("the connection is closed", () => isClosed);
  }
});

test("redirect: is returned and not followed", async (t) => {
  const inside = await serve(t, (_, response) => response.end("secret"));
  const server = await serve(t, (_, response) => response.writeHead(307, { location: inside.url }).end());
  const fetch = fetchWith(t, guardWith(`127.0.0.1:${server.port}`));
  const response = await fetch(server.url, { method: "POST", body: "x", redirect: "follow" });
  assert.equal(response.status, 307);
  assert.equal(response.headers.get("location"), inside.url);
  assert.deepEqual(inside.requests, []);
});

test("the service itself: only its allowed paths may be called", async (t) => {
  const server = await serve(t, (_, response) => response.end("own"));
  const own = () => ({ addresses: ["127.0.0.1"], port: server.port });
  const guard = guardWith("loopback, me", { own, ownPathsAllowed: ["/dev/hooks/"] });
  const fetch = fetchWith(t, guard);
  for (const host of ["127.0.0.1", "me"]) {
    const hook = await fetch(`http://${host}:${server.port}/dev/hooks/1`);
    assert.equal(await hook.text(), "own");
  }
  for (const path of ["/", "/dev/hooks", "/dev/hooks/../x", "/dev/hooks/%2e%2e/x", "/dev/hooks/\\../../x"]) {
    await assert.rejects(fetch(server.url + path), blocked(/itself/), path);
    await assert.rejects(fetch(`http://me:${server.port}${path}`), blocked(/itself/), path);
    assert.match(findUrlProblem(guard, `http://localhost:${server.port}${path}`) ?? "", /itself/);
  }
  assert.deepEqual(server.requests, ["/dev/hooks/1", "/dev/hooks/1"]);
});

test("service that listens on every address: is refused on each", () => {
  for (const address of ["0.0.0.0", "::"]) {
    const guard = guardWith("loopback", { own: () => ({ addresses: [address], port: 4000 }) });
    assert.match(findUrlProblem(guard, "http://127.1.2.3:4000/") ?? "", /itself/);
    assert.match(findUrlProblem(guard, "http://[::1]:4000/") ?? "", /itself/);
    assert.equal(findUrlProblem(guard, "http://127.1.2.3:4001/"), null);
  }
});

test("DNS without an answer: fails in phase connect", async (t) => {
  const fetch = fetchWith(t, guardWith("", { resolve: () => new Promise(() => {}) }), { connectMs: 20 });
  await assert.rejects(fetch("https://slow.example.com/"), timedOut("connect"));
});

test("server without a response: fails in phase first_byte", async (t) => {
  const server = await serve(t, () => {});
  const fetch = fetchWith(t, guardWith("loopback"), { headersMs: 30 });
  await assert.rejects(fetch(server.url), timedOut("first_byte"));
});

test("body that stalls: fails in phase idle", async (t) => {
  const server = await serve(t, (_, response) => void response.write("drip"));
  const fetch = fetchWith(t, guardWith("loopback"), { bodyIdleMs: 30 });
  const response = await fetch(server.url);
  await assert.rejects(response.text(), timedOut("idle"));
});

test("endless slow body: lasts until the caller aborts", async (t) => {
  const caller = new AbortController();
  let drops = 0;
  const server = await serve(t, (_, response) => {
    const drip = setInterval(() => {
      response.write(".");
      if (++drops === 12) caller.abort();
    }, 5);
    response.on("close", () => clearInterval(drip));
  });
  const fetch = fetchWith(t, guardWith("loopback"));
  const response = await fetch(server.url, { signal: caller.signal });
  await assert.rejects(response.text(), { name: "AbortError" });
});

test("body over its limit: fails, with and without a length", async (t) => {
  const server = await serve(t, (request, response) => {
    if (request.url === "/length") response.setHeader("content-length", 101);
    response.end("x".repeat(101));
  });
  const fetch = fetchWith(t, guardWith("loopback"), { maxResponseBytes: 100 });
  for (const path of ["/length", "/chunked"]) {
    const read = async () => (await fetch(server.url + path)).text();
    await assert.rejects(read, failed("RESPONSE_TOO_LARGE"));
  }
});

test("headers over 16 KiB: fail", async (t) => {
  const server = await serve(t, (_, response) => response.setHeader("x-long", "x".repeat(17_000)).end());
  await assert.rejects(fetchWith(t, guardWith("loopback"))(server.url), failed("HEADERS_TOO_LARGE"));
});

test("encoded body: is not decoded", async (t) => {
  const bomb = gzipSync(Buffer.alloc(1_000_000));
  const server = await serve(t, (_, response) => response.setHeader("content-encoding", "gzip").end(bomb));
  const response = await fetchWith(t, guardWith("loopback"), { maxResponseBytes: 5_000 })(server.url);
  assert.equal(response.headers.get("content-encoding"), "gzip");
  assert.deepEqual(Buffer.from(await response.arrayBuffer()), bomb);
});

test("reason phrase in any script: does not matter", async (t) => {
  for (const reason of ["OK", "\u6210\u529f", "\u{fffd}", ""]) {
    const server = await serve(
      t,
      (_, response) =>
        void response.socket?.end(
          `HTTP/1.1 200 ${reason}\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok`,
        ),
    );
    const response = await fetchWith(t, guardWith("loopback"))(server.url);
    assert.deepEqual([response.status, await response.text()], [200, "ok"]);
  }
});

test("response that is not HTTP: fails", async (t) => {
  const server = await serve(t, (_, response) => void response.socket?.end("HTTP/1.1 999 Odd\r\n\r\n"));
  await assert.rejects(fetchWith(t, guardWith("loopback"))(server.url), failed("INVALID_RESPONSE"));
});

test("refused connection: the error has its code and not the address", async (t) => {
  const fetch = fetchWith(t, guardWith("ollama"));
  await assert.rejects(fetch("http://ollama:1/"), (error: Error) => {
    assert.doesNotMatch(error.message, /127/);
    return failed("ECONNREFUSED")(error);
  });
});

test("caller's signal: aborts before and during the connection, and while waiting", async (t) => {
  const server = await serve(t, () => {});
  const fetch = fetchWith(t, guardWith("loopback, never", { resolve: () => new Promise(() => {}) }), {
    connectMs: 100,
  });
  await assert.rejects(fetch(server.url, { signal: AbortSignal.abort() }), { name: "AbortError" });
  assert.deepEqual(server.requests, []);
  for (const url of ["http://never/", server.url]) {
    const signal = AbortSignal.timeout(20);
    await assert.rejects(fetch(url, { signal }), (error) => error === signal.reason);
  }
});

test("canceled body: closes its connection", async (t) => {
  let isClosed = false;
  const server = await serve(t, (_, response) => {
    response.on("close", () => (isClosed = true)).write("endless");
  });
  // Silence would close it later than the test fails.
  const fetch = fetchWith(t, guardWith("loopback"));
  const response = await fetch(server.url);
  await response.body?.cancel();
  await until("the connection is closed", () => isClosed);
});

test("close: aborts running calls", async (t) => {
  const server = await serve(t, (_, response) => void response.write("endless"));
  const safe = createGuardedFetch(guardWith("loopback"), generous);
  const response = await safe.fetch(server.url);
  await safe.close();
  await assert.rejects(response.text(), TargetFailure);
});

test("close before the first call: the call fails and nothing is sent", async (t) => {
  const { url, requests } = await serve(t, (_, response) => void response.end());
  const safe = createGuardedFetch(guardWith("loopback"), generous);
  await safe.close();
  await assert.rejects(safe.fetch(url), failed("UND_ERR_DESTROYED"));
  assert.deepEqual(requests, []);
});

test("names and values, or a Request with the same: the same request on the wire", async (t) => {
  const received: string[] = [];
  const { url } = await serve(t, async (request, response) => {
    const headers = Object.entries(request.headers).toSorted(([a], [b]) => (a < b ? -1 : 1));
    received.push(JSON.stringify([request.method, request.url, headers, await text(request)]));
    response.end();
  });
  const fetch = fetchWith(t, guardWith("loopback"));
  const inits: RequestInit[] = [
    {},
    { headers: { "X-One": "1", Host: "elsewhere", Expect: "100-continue" } },
    { method: "POST", body: "naïve 🗝", headers: { "Content-Type": "application/json", Accept: "a, b" } },
    { method: "POST", body: "without a type" },
  ];
  for (const init of inits) {
    await (await fetch(`${url}/a?b=c`, init)).text();
    await (await fetch(new Request(`${url}/a?b=c`, init))).text();
    const [plain, whole] = received.splice(0);
    assert.equal(plain, whole);
  }
});

test("names and values that no header may have: TargetFailure, and no request", async (t) => {
  const { url, requests } = await serve(t, (_, response) => response.end());
  const fetch = fetchWith(t, guardWith("loopback"));
  for (const headers of [{ "x-one": "a\r\nx-two: b" }, { "x one": "a" }, { "x-one": "🗝" }])
    await assert.rejects(fetch(url, { headers: headers as never }), TargetFailure);
  assert.deepEqual(requests, []);
});
