import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, suite, test } from "node:test";
import {
  emailsTo,
  requestMagicLink,
  tokenFromEmail,
  uniqueEmail,
  withoutMeta,
} from "../../../test/emails.ts";
import { assertError, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { statementsOf } from "../../../test/statements.ts";
import { HOUR_MS } from "../../core/dates.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;

let market: Market;
before(async () => {
  market = await openMarket({ config: { trustProxy: ["127.0.0.1"] } });
});
after(() => market.close());

const ask = (email: unknown, headers: Record<string, string> = {}) =>
  market.as(null).post("/api/auth/magic-link", { email }, headers);

async function assertRefused(reply: Reply, retryAfterSeconds: number) {
  assertError(reply, 429, "RATE_LIMIT_EXCEEDED");
  assert.equal(reply.headers.get("retry-after"), String(retryAfterSeconds));
}

test("POST /api/auth/magic-link: the email's link has the token in its fragment; the answer has none", async () => {
  const email = uniqueEmail();
  const reply = await ask(email);
  assert.equal(reply.status, 200, reply.text);
  assert.equal(reply.body.success, true);
  assert.equal(reply.body.data.lifetimeSeconds, 600);
  const [message] = await emailsTo(market, email);
  const token = await tokenFromEmail(market, email);
  assert.ok(message!.html.includes(`/auth/verify#token=${token}`));
  assert.ok(!reply.text.includes(token));
});

suite("known and unknown addresses", () => {
  test("the same answer, equal statements and the same email", async () => {
    const { userId } = await market.createUser();
    const { rows } = await market.query("select email from users where id = $1", [userId]);
    const replies: Reply[] = [];
    const known = await statementsOf(async () => replies.push(await ask(rows[0].email)));
    const unknownAddress = uniqueEmail();
    const unknown = await statementsOf(async () => replies.push(await ask(unknownAddress)));
    assert.deepEqual(withoutMeta(replies[0]!), withoutMeta(replies[1]!));
    assert.ok(known.length >= 5);
    assert.deepEqual(known, unknown);
    const messages = await Promise.all(
      [rows[0].email, unknownAddress].map(async (email) => {
        const [message, ...more] = await emailsTo(market, email);
        assert.deepEqual(more, []);
        return message!.text.replace(/#token=\S+/, "#token=");
      }),
    );
    assert.equal(messages[0], messages[1]);
  });

  test("the same limits", async () => {
    const { userId } = await market.createUser();
    const { rows } = await market.query("select email from users where id = $1", [userId]);
    const refusals = [];
    for (const email of [rows[0].email, uniqueEmail()]) {
      await ask(email);
      const refusal = await ask(email);
      await assertRefused(refusal, 30);
      refusals.push(withoutMeta(refusal));
    }
    assert.deepEqual(refusals[0], refusals[1]);
  });
});

test("a browser in which the owner signed in: a quota of its own when strangers used up the address's", async () => {
  const email = uniqueEmail();
  const signedIn = await market
    .as(null)
    .post("/api/auth/verify", { token: await requestMagicLink(market, email) });
  const known = signedIn.headers.getSetCookie().find((line) => line.startsWith("__Host-known="))!;
  const cookie = known.split(";")[0]!;
  const askKnown = (address = email) => ask(address, { cookie });
  for (let times = 0; times < 20; times++) {
    market.clock.forward(20 * MINUTE_MS);
    await ask(email);
  }
  market.clock.forward(MINUTE_MS);
  assertError(await ask(email), 429, "RATE_LIMIT_EXCEEDED");
  assert.equal((await askKnown()).status, 200);
  await assertRefused(await askKnown(), 30);
  const other = uniqueEmail();
  assert.equal((await askKnown(other)).status, 200);
  await assertRefused(await askKnown(other), 30);
  await assertRefused(await ask(other), 30);
});

suite("links to one address", () => {
  test("one in 30 seconds", async () => {
    const email = uniqueEmail();
    await requestMagicLink(market, email);
    market.clock.forward(20 * SECOND_MS);
    await assertRefused(await ask(email), 10);
    market.clock.forward(10 * SECOND_MS);
    await requestMagicLink(market, email);
  });

  test("five in 15 minutes; a refused request does not count", async () => {
    const email = uniqueEmail();
    for (let link = 0; link < 5; link++) {
      await requestMagicLink(market, email);
      market.clock.forward(31 * SECOND_MS);
      if (link < 4) continue;
      await assertRefused(await ask(email), 900 - 5 * 31);
    }
    market.clock.forward((900 - 5 * 31) * SECOND_MS);
    await requestMagicLink(market, email);
  });

  test("twenty a day", async () => {
    const email = uniqueEmail();
    for (let link = 0; link < 20; link++) {
      assert.equal((await ask(email)).status, 200);
      market.clock.forward(5 * MINUTE_MS);
    }
    await assertRefused(await ask(email), (24 * HOUR_MS - 100 * MINUTE_MS) / 1000);
    market.clock.forward(24 * HOUR_MS - 100 * MINUTE_MS);
    await requestMagicLink(market, email);
  });

  test("20 parallel requests, any spelling: exactly one", async () => {
    const email = uniqueEmail();
    const spellings = [email, email.toUpperCase()];
    const replies = await Promise.all(Array.from({ length: 20 }, (_, at) => ask(spellings[at % 2])));
    assert.equal(replies.filter(({ status }) => status === 200).length, 1);
    assert.equal(replies.filter(({ status }) => status === 429).length, 19);
    assert.equal((await emailsTo(market, email)).length, 1);
  });
});

suite("links from one network", () => {
  const from = (ip: string) => ask(uniqueEmail(), { "x-forwarded-for": ip });

  test("20 an hour, to any addresses, whose quota is unchanged by refused requests", async () => {
    for (let link = 0; link < 20; link++) assert.equal((await from("192.0.2.7")).status, 200);
    const email = uniqueEmail();
    await assertRefused(await ask(email, { "x-forwarded-for": "192.0.2.7" }), 3600);
    assert.equal(
      (await ask(email, { "x-forwarded-for": "192.0.2.8" })).status,
      200,
      "its neighbour has an allowance of its own",
    );
    market.clock.forward(HOUR_MS);
    assert.equal((await from("192.0.2.7")).status, 200);
  });

  test("20 from one IPv6 /64, in parallel too", async () => {
    const replies = await Promise.all(
      Array.from({ length: 30 }, (_, at) => from(`2001:db8:1:2::${at.toString(16)}`)),
    );
    assert.equal(replies.filter(({ status }) => status === 200).length, 20);
    assert.equal((await from("2001:db8:1:3::1")).status, 200, "the next /64 has its own");
  });
});

test("the counters are unavailable: no email", async () => {
  const email = uniqueEmail();
  await market.query("alter table sign_in_attempts rename to elsewhere");
  try {
    assert.equal((await ask(email)).status, 500);
  } finally {
    await market.query("alter table elsewhere rename to sign_in_attempts");
  }
  assert.deepEqual(await emailsTo(market, email), []);
});

suite("a disguised address: refused with the field", () => {
  const tricks: Record<string, unknown> = {
    "a full-width @": "ada＠example.com",
    "two @": "ada@evil.example@example.com",
    "a line break and a header": "ada@example.com\r\nBcc: eve@evil.example",
    "a line break at the end": "ada@example.com\n",
    "a list": "ada@example.com,eve@evil.example",
    "a list with semicolons": "ada@example.com;eve@evil.example",
    "a quoted local part": '"ada@evil.example"@example.com',
    "a name with angle brackets": "Ada <ada@example.com>",
    "a comment": "ada(eve@evil.example)@example.com",
    "a space": "ada lovelace@example.com",
    "an address literal": "ada@[127.0.0.1]",
    "an address as the domain": "ada@127.0.0.1",
    "a domain of other letters": "ada@exämple.com",
    "a Kelvin sign, which lower-cases to k": "ada@\u212Aelvin.example",
    "a ligature that NFKC takes apart": "o\uFB03ce@example.com",
    "an invisible letter": "ada\u200b@example.com",
    "more than 254 characters": `${"a".repeat(60)}@${`${"b".repeat(60)}.`.repeat(4)}com`,
    "a local part of more than 64": `${"a".repeat(65)}@example.com`,
    "no dot in the domain": "ada@localhost",
    "an empty label": "ada@example..com",
    "a dot in front": ".ada@example.com",
    nothing: "",
    "no @": "ada.example.com",
    "an array": ["ada@example.com"],
    null: null,
  };
  for (const [name, email] of Object.entries(tricks)) {
    test(name, async () => {
      const { rows } = await market.query("select count(*) from emails");
      assertError(await ask(email), 400, "INVALID_REQUEST", "email");
      assert.deepEqual((await market.query("select count(*) from emails")).rows, rows);
    });
  }

  test("a plain address: accepted", async () => {
    for (const local of ["ada", "ada.lovelace+shop", "o'brien", "_x-y_", "a".repeat(64)]) {
      assert.equal((await ask(`${local}@${crypto.randomUUID()}.example`)).status, 200, local);
    }
  });
});

/** `fetch` cannot set Host. */
function requestWithHost(email: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      `${market.origin}/api/auth/magic-link`,
      { method: "POST", headers: { "content-type": "application/json", ...headers } },
      (reply) => {
        reply.resume();
        resolve(reply.statusCode!);
      },
    );
    outgoing.on("error", reject).end(JSON.stringify({ email }));
  });
}

test("a forged Host header: not in the link", async () => {
  for (const headers of [
    { host: "evil.example" },
    { host: "evil.example:443", "x-forwarded-host": "evil.example", "x-forwarded-proto": "https" },
    { forwarded: "host=evil.example;proto=https", "x-original-host": "evil.example" },
  ]) {
    const email = uniqueEmail();
    assert.equal(await requestWithHost(email, headers), 200);
    const [message] = await emailsTo(market, email);
    assert.ok(!JSON.stringify(message).includes("evil.example"));
    await tokenFromEmail(market, email);
  }
});

test("the link: starts with the configured public URL", async () => {
  const other = await openMarket({ config: { publicUrl: "https://stoa.example" } });
  try {
    const email = uniqueEmail();
    await other.as(null).post("/api/auth/magic-link", { email });
    const [message] = await emailsTo(other, email);
    assert.match(message!.text, /^https:\/\/stoa\.example\/auth\/verify#token=[\w-]{43}$/m);
  } finally {
    await other.close();
  }
});

test("a request from a page of another site: refused", async () => {
  for (const headers of [
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site" },
    { origin: "https://evil.example" },
  ] as Record<string, string>[]) {
    assertError(await ask(uniqueEmail(), headers), 403, "UNAUTHORIZED");
  }
});

test("a repeated Idempotency-Key: a second link", async () => {
  const email = uniqueEmail();
  const headers = { "idempotency-key": "once" };
  const first = await ask(email, headers);
  const refused = await ask(email, headers);
  assert.equal(first.status, 200);
  assertError(refused, 429, "RATE_LIMIT_EXCEEDED");
  market.clock.forward(MINUTE_MS);
  assert.equal((await ask(email, headers)).headers.get("idempotent-replayed"), null);
  assert.equal((await emailsTo(market, email)).length, 2);
});
