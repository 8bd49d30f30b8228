import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, before, suite, test } from "node:test";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { endpoints } from "@stoa/contract";
import pg from "pg";
import { createDraft } from "../../../test/factories.ts";
import { sampleOf } from "../../../test/full-size.ts";
import { waitForBlockedStatements } from "../../../test/locks.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { UploadTimeout } from "./body-deadlines.ts";

const IDLE_MS = 300;

let market: Market;
let member: Client;
before(async () => {
  // A pause of the machine must not reach another deadline first, so `totalMs` and the default of `headersMs` are long.
  const slow = { idleMs: IDLE_MS, totalMs: 60_000, bytesPerSecond: 100 };
  market = await openMarket({ requestDeadlines: { body: slow, upload: slow } });
  member = await market.createUser();
});
after(() => market.close());

/** Reads until the service closes the connection. The test runner's timeout is the upper bound. */
function untilClosed(
  text: string,
  { every, drip = "x", origin = market.origin }: { every?: number; drip?: string; origin?: string } = {},
) {
  const { hostname, port } = new URL(origin);
  return new Promise<string>((resolve) => {
    let received = "";
    let dripping: NodeJS.Timeout | undefined;
    const socket = connect(Number(port), hostname, () => {
      socket.write(text);
      if (every !== undefined) dripping = setInterval(() => socket.write(drip), every);
    });
    socket.on("data", (data) => {
      received += data;
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      clearInterval(dripping);
      resolve(received);
    });
  });
}

const begin = (line: string, headers: string[], body = "{") =>
  [`${line} HTTP/1.1`, "Host: stoa", ...headers, "", body].join("\r\n");
const JSON_BODY = ["Content-Type: application/json", "Content-Length: 1000"];
const statusOf = (answer: string) => /^HTTP\/1\.1 (\d+)/.exec(answer)?.[1];

suite("a body that stops after its first byte: the connection closes", () => {
  const paths = sampleOf([
    ...endpoints.map(({ method, base, path }) => `${method} ${base}${path.replace(/:\w+/g, "x")}`),
    ...["/mcp", "/payments/webhooks/fake", "/dev/hooks/x", "/nowhere", "/auth/sign-in"].map(
      (path) => `POST ${path}`,
    ),
    ...["token", "revoke", "introspect", "register", "par", "authorize", "interaction/x"].map(
      (path) => `POST /oauth/${path}`,
    ),
    "GET /healthz",
  ]);

  test(`without a credential, at each of ${paths.length} paths`, async () => {
    const answers = await Promise.all(paths.map((path) => untilClosed(begin(path, JSON_BODY))));
    for (const [at, answer] of answers.entries()) assert.ok(statusOf(answer), paths[at]);
  });

  test("with a credential, also chunked: the answer has the reason", async () => {
    const authorization = `Authorization: Bearer ${member.key}`;
    const chunked = ["Content-Type: application/json", "Transfer-Encoding: chunked"];
    for (const [headers, body] of [
      [JSON_BODY, "{"],
      [chunked, "5\r\n{"],
    ] as const) {
      const answer = await untilClosed(begin("POST /v1/products", [authorization, ...headers], body));
      assert.equal(statusOf(answer), "400", answer);
      assert.match(answer, /"INVALID_REQUEST".*"field":"body".*(stood still|arrived at less)/);
    }
  });
});

test("a body of single slow bytes: the connection closes", async () => {
  const answer = await untilClosed(begin("POST /api/auth/login", JSON_BODY), { every: 50 });
  assert.match(answer, /arrived at less than 100 bytes a second/);
});

test("a body that arrives while the event loop is busy: is read before its deadline is checked", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const timeout = new UploadTimeout({ idleMs: IDLE_MS, totalMs: 60_000, bytesPerSecond: 1 });
  t.after(timeout.end);
  let isLate = false;
  timeout.late.catch(() => {
    isLate = true;
  });
  const passWindow = async (arrives: string) => {
    t.mock.timers.tick(IDLE_MS);
    // The event loop reads sockets after its timers.
    timeout.stream.write(arrives);
    await nextTurn();
    return isLate;
  };
  assert.equal(await passWindow("x"), false);
  assert.equal(await passWindow(""), true);
});

test("an endless fast body: ends at the total deadline", async (t) => {
  const body = { idleMs: IDLE_MS, totalMs: 900, bytesPerSecond: 100 };
  const { origin, close } = await openMarket({ requestDeadlines: { body } });
  t.after(close);
  const endless = JSON_BODY.map((line) => line.replace("1000", "100000"));
  const drip = "x".repeat(50);
  const answer = await untilClosed(begin("POST /api/auth/login", endless), { every: 20, drip, origin });
  assert.match(answer, /body: took longer than 0.9 seconds/);
});

test("stalled headers, or an idle connection: closed", async (t) => {
  const { origin, close } = await openMarket({ requestDeadlines: { headersMs: 300 } });
  t.after(close);
  const answers = await Promise.all(
    ["POST /v1/products HTTP/1.1\r\nHost:", ""].map((text) => untilClosed(text, { origin })),
  );
  for (const answer of answers) {
    assert.equal(statusOf(answer), "400");
    assert.match(answer, /request: did not arrive in time/);
  }
});

test("a complete body: processing may take longer than the deadlines", async () => {
  const holder = new pg.Client({ connectionString: market.target });
  await holder.connect();
  await holder.query("begin; lock table products in exclusive mode");
  const created = createDraft(member);
  await waitForBlockedStatements(market);
  // Only time shows that a deadline did not fire.
  await sleep(2 * IDLE_MS);
  await holder.query("commit");
  await holder.end();
  await created;
});
