import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { uniqueEmail } from "../../../test/emails.ts";
import { runs } from "../../../test/full-size.ts";
import { type Market, openMarket } from "../../../test/market.ts";
import { DAY_MS } from "../../core/dates.ts";
import { ApiError } from "../../core/errors.ts";
import { countAttempts, releaseAttempts } from "./attempts.ts";
import { deleteExpiredSignInData } from "./cleanup.ts";
import { mintOneTimeToken } from "./one-time-tokens.ts";

/** The limits of magic links to one address. */
const WINDOWS = [
  { times: 1, seconds: 30 },
  { times: 5, seconds: 900 },
  { times: 20, seconds: 86_400 },
];

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

/** null: counted; else the seconds to wait. */
async function countLink(address: string): Promise<number | null> {
  const { ctx } = market.service;
  try {
    await ctx.db
      .transaction()
      .execute((tx) => countAttempts(ctx, tx, [["magic-link of an address", address]]));
    return null;
  } catch (error) {
    assert.ok(error instanceof ApiError && error.code === "RATE_LIMIT_EXCEEDED", String(error));
    return error.retryAfterSeconds!;
  }
}

test("random attempts: no window overfull, none refused early, Retry-After exact", async () => {
  const seconds = fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 100, max: 20_000 }));
  await fc.assert(
    fc.asyncProperty(fc.array(seconds, { minLength: 1, maxLength: 40 }), async (pauses) => {
      const address = randomUUID();
      const passed: number[] = [];
      const within = (window: number, at: number) =>
        passed.filter((time) => time > at - window * 1000).length;
      const hasRoom = (at: number) => WINDOWS.every((window) => within(window.seconds, at) < window.times);
      for (const pause of pauses) {
        market.clock.forward(pause * 1000);
        const now = market.clock.now.getTime();
        const wait = await countLink(address);
        assert.equal(wait === null, hasRoom(now));
        if (wait === null) passed.push(now);
        else {
          assert.ok(hasRoom(now + wait * 1000), "there is room after the wait");
          assert.ok(!hasRoom(now + (wait - 1) * 1000), "and not a second before");
        }
      }
    }),
    { numRuns: runs(25) },
  );
});

test("two attempts at the same moment, one is refunded: the other counts", async () => {
  const { ctx } = market.service;
  const account = randomUUID();
  const count = () =>
    ctx.db.transaction().execute((tx) => countAttempts(ctx, tx, [["password of an account", account]]));
  const first = await count();
  for (let tries = 0; tries < 9; tries++) await count();
  await assert.rejects(count);
  await ctx.db.transaction().execute((tx) => releaseAttempts(tx, first));
  await count();
  await assert.rejects(count);
});

test("attempts: only those outside every window are deleted", async () => {
  const { ctx } = market.service;
  const { userId } = await market.createUser();
  const mint = (lifetimeMs: number) =>
    mintOneTimeToken(ctx, ctx.db, { purpose: "magic-link", email: uniqueEmail(), lifetimeMs });
  await market.query("truncate one_time_tokens, sign_in_attempts");
  await mint(60_000);
  await mint(40 * DAY_MS);
  const ended = await market.createSession(userId);
  await market.query("update sessions set ended_at = $1", [market.clock.now]);
  await countLink("old");
  market.clock.forward(29 * DAY_MS);
  await market.createSession(userId);
  await countLink("new");

  await deleteExpiredSignInData(ctx);
  const count = async (table: string) => (await market.query(`select count(*) from ${table}`)).rows[0].count;
  assert.deepEqual(
    [await count("one_time_tokens"), await count("sign_in_attempts"), await count("sessions")],
    [1, 1, 2],
  );
  market.clock.forward(DAY_MS + 1);
  await deleteExpiredSignInData(ctx);
  assert.equal(await count("sessions"), 1);
  assert.equal((await ended.get("/v1/purchases")).status, 401);
});
