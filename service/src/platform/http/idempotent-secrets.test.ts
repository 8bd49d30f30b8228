import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { runs } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { until } from "../../../test/until.ts";
import { HOUR_MS } from "../../core/dates.ts";
import { LEASE_SECONDS, RETENTION_HOURS } from "./idempotency.ts";

const keyInput = { name: "Once", permissions: { "products:read": true } };

let market: Market;
let owner: Client;
before(async () => {
  market = await openMarket();
  const { userId } = await market.createUser({ name: "Owner" });
  owner = await market.createSession(userId);
});
after(() => market.close());

const make = (key: string, body: object = keyInput) =>
  owner.post("/v1/api-keys", body, { "idempotency-key": key });

/** Moves the clock and signs in again, since creating keys needs a fresh sign-in. */
async function later(ms: number): Promise<void> {
  market.clock.forward(ms);
  owner = await market.createSession(owner.userId);
}

const countOf = async (name: string) => {
  const { rows } = await market.query("select count(*)::int as count from api_keys where name = $1", [name]);
  return rows[0].count as number;
};

/** The repeat names the created object and contains nothing of its secret. */
function assertNamed(repeat: Reply, first: Reply) {
  assert.equal(first.status, 201, first.text);
  const { id, key } = first.body.data;
  assert.deepEqual(assertError(repeat, 409, "CONFLICT"), { id });
  assert.equal(repeat.headers.get("idempotent-replayed"), "true");
  assert.ok(!repeat.text.includes(key.slice(22)));
}

test("an answer with a secret: not repeated; 409 CONFLICT names the created object", async () => {
  const body = { ...keyInput, name: "Repeated" };
  const first = await make("one", body);
  for (let times = 0; times < 3; times++) assertNamed(await make("one", body), first);
  assert.equal(await countOf("Repeated"), 1);
  assert.equal((await market.as(first.body.data.key).get("/v1/categories")).status, 200);
});

test("a rotated key: the repeat names its successor, which exists once", async () => {
  const { body } = await owner.post("/v1/api-keys", { ...keyInput, name: "Rotated" });
  const path = `/v1/api-keys/${body.data.id}/rotate`;
  const rotate = () => owner.post(path, undefined, { "idempotency-key": "rotate" });
  const first = await rotate();
  assertNamed(await rotate(), first);
  assert.equal(await countOf("Rotated"), 2);
});

test("the secret: not stored, not even sealed", async () => {
  const first = await make("sealed");
  const { rows } = await market.query("select * from idempotency_keys where key = 'sealed'");
  assert.equal(rows.length, 1);
  const { caller, route, key, sealed_body } = rows[0];
  const kept = market.service.ctx.vault.open(sealed_body, `idempotency|${caller}|${route}|${key}`);
  assert.ok(kept.includes(first.body.data.id));
  assert.ok(!kept.includes(first.body.data.key.slice(22)));
});

test("another body: 422; another account's key: a new request", async () => {
  await make("mine");
  assertError(await make("mine", { ...keyInput, name: "Other" }), 422, "IDEMPOTENCY_KEY_REUSED");
  assert.equal(await countOf("Other"), 0);
  const { userId } = await market.createUser();
  const theirs = await market.createSession(userId);
  const reply = await theirs.post("/v1/api-keys", keyInput, { "idempotency-key": "mine" });
  assert.equal(reply.status, 201, reply.text);
});

test("a refusal: not stored, the corrected request creates the key", async () => {
  assertError(await make("mended", { ...keyInput, name: "" }), 400, "INVALID_REQUEST", "name");
  assert.equal((await make("mended")).status, 201);
});

test("the name of the created object: for 24 hours, later a new request", async () => {
  const body = { ...keyInput, name: "A day" };
  const first = await make("a day", body);
  await later(RETENTION_HOURS * HOUR_MS);
  assertNamed(await make("a day", body), first);
  market.clock.forward(1);
  const second = await make("a day", body);
  assert.equal(second.status, 201, second.text);
  assert.notEqual(second.body.data.id, first.body.data.id);
});

test("parallel requests: one shows the key, the others get 409", async () => {
  const body = { ...keyInput, name: "Twenty" };
  const replies = await Promise.all(Array.from({ length: runs(20) }, () => make("twenty", body)));
  const [first, ...more] = replies.filter(({ status }) => status === 201);
  assert.deepEqual(more, []);
  for (const reply of replies) {
    if (reply === first) continue;
    if (reply.body.error?.code === "IDEMPOTENCY_IN_PROGRESS") assert.equal(reply.status, 409);
    else assertNamed(reply, first!);
  }
  assertNamed(await make("twenty", body), first!);
  assert.equal(await countOf("Twenty"), 1);
});

suite("the first request is still running", () => {
  /** Blocks requests that create a key until the work is done; `waiting` resolves when enough of them wait. */
  async function whileHeld(
    work: (waiting: (count: number) => Promise<void>) => Promise<void>,
  ): Promise<void> {
    const client = await market.service.ctx.pool.connect();
    try {
      await client.query("begin");
      // Weaker than `for update`, on which the request log would wait too, and be counted in place of a request.
      await client.query("select from users where id = $1 for no key update", [owner.userId]);
      await work(async (count) => {
        await until(`${count} statements wait for a lock`, async () => {
          const { rows } = await market.query(
            "select count(*)::int as count from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
          );
          return rows[0].count >= count;
        });
      });
      await client.query("commit");
    } finally {
      client.release(true);
    }
  }

  test("a repeat: 409 to retry, then the name of the created object", { timeout: 120_000 }, async () => {
    const body = { ...keyInput, name: "Slow" };
    let first!: Promise<Reply>;
    await whileHeld(async (waiting) => {
      first = make("slow", body);
      await waiting(1);
      const repeat = await make("slow", body);
      assertError(repeat, 409, "IDEMPOTENCY_IN_PROGRESS");
      assert.match(repeat.headers.get("retry-after") ?? "", /^[1-9]\d*$/);
    });
    const made = await first;
    assertNamed(await make("slow", body), made);
    assert.equal(await countOf("Slow"), 1);
  });

  test("and loses its lease: creates nothing, only the repeat's key exists", {
    timeout: 120_000,
  }, async () => {
    const body = { ...keyInput, name: "Taken over" };
    let lost!: Promise<Reply>;
    let taken!: Promise<Reply>;
    await whileHeld(async (waiting) => {
      lost = make("takeover", body);
      await waiting(1);
      market.clock.forward(LEASE_SECONDS * 1000 + 1);
      taken = make("takeover", body);
      await waiting(2);
    });
    assertError(await lost, 409, "IDEMPOTENCY_IN_PROGRESS");
    const made = await taken;
    assertNamed(await make("takeover", body), made);
    assert.equal(await countOf("Taken over"), 1);
  });

  test("and dies after creating the key: a repeat is 409 CONFLICT and names it", async () => {
    const body = { ...keyInput, name: "Unseen" };
    const first = await make("unseen", body);
    // As when a process dies after its commit and before it stores the answer.
    await market.query("update idempotency_keys set status = null, sealed_body = null where key = 'unseen'");
    assertError(await make("unseen", body), 409, "IDEMPOTENCY_IN_PROGRESS");
    market.clock.forward(LEASE_SECONDS * 1000 + 1);
    assertNamed(await make("unseen", body), first);
    assert.equal(await countOf("Unseen"), 1);
  });
});
