import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { emailsToUser, unwrapLines } from "../../../test/emails.ts";
import { runs } from "../../../test/full-size.ts";
import { type Market, openMarket } from "../../../test/market.ts";
import { DAY_MS, HOUR_MS } from "../../core/dates.ts";
import { sendKeyExpiryEmails } from "./expiry-emails.ts";
import { createKeyAsOperator } from "./keys.ts";

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

const round = () => sendKeyExpiryEmails(market.service.ctx);

/** Creates an account with one key that expires in `days`. Returns the key's id. */
async function hasKeyFor(days: number): Promise<string> {
  const { userId } = await market.createUser();
  const expiresAt = new Date(market.clock.now.getTime() + days * DAY_MS);
  await createKeyAsOperator(market.service.ctx, { userId, name: "Dated", permissions: [], expiresAt });
  return userId;
}

const countFor = async (userId: string) => (await emailsToUser(market, userId)).length;

test("key expiry emails: one email 14 days and one 3 days before the end", async () => {
  const userId = await hasKeyFor(30);
  const emailDays = [];
  for (let hour = 0; hour < 31 * 24; hour += 6) {
    const before = await countFor(userId);
    await round();
    const now = await countFor(userId);
    if (now > before) emailDays.push({ day: hour / 24, messages: now - before });
    market.clock.forward(6 * HOUR_MS);
  }
  assert.deepEqual(emailDays, [
    { day: 16, messages: 1 },
    { day: 27, messages: 1 },
  ]);
  const [message] = await emailsToUser(market, userId);
  assert.match(message!.subject, /about to expire/);
  assert.match(
    unwrapLines(message!.text),
    /“Dated” \(stoa_test_\w{12}…\) stops working on \w{3}, \d{2} \w{3} 2026/,
  );
});

test("key expiry emails, parallel job runs: one email", async () => {
  const people = await Promise.all(Array.from({ length: 8 }, () => hasKeyFor(20)));
  const node = await market.startNode();
  market.clock.forward(10 * DAY_MS);
  await Promise.all(
    Array.from({ length: 6 }, (_, at) => sendKeyExpiryEmails(at % 2 ? node.ctx : market.service.ctx)),
  );
  assert.deepEqual(await Promise.all(people.map(countFor)), [1, 1, 1, 1, 1, 1, 1, 1]);
});

test("key expiry emails, missed job runs: at most one email a threshold, the nearest first", async () => {
  const lives = fc.integer({ min: 1, max: 40 });
  const rounds = fc.uniqueArray(fc.integer({ min: 0, max: 40 }), { maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(lives, rounds, async (life, days) => {
      const userId = await hasKeyFor(life);
      const made = market.clock.now.getTime();
      let expected = 0;
      let lastThreshold = Number.POSITIVE_INFINITY;
      for (const day of days.toSorted((a, b) => a - b)) {
        market.clock.now = new Date(made + day * DAY_MS);
        const left = life - day;
        const due = [3, 14].find((threshold) => left <= threshold && life >= threshold);
        if (left > 0 && due !== undefined && due < lastThreshold) {
          expected++;
          lastThreshold = due;
        }
        await round();
        assert.equal(await countFor(userId), expected, `${left} of ${life} days left`);
      }
    }),
    { numRuns: runs(25) },
  );
});

test("key expiry emails: none for a revoked or replaced key, nor for a closed or banned account", async () => {
  const people = await Promise.all(Array.from({ length: 5 }, () => hasKeyFor(20)));
  const set = (table: string, column: string, at: number) =>
    market.query(`update ${table} set ${column} = $1 where ${table === "users" ? "id" : "user_id"} = $2`, [
      market.clock.now,
      people[at],
    ]);
  await set("api_keys", "revoked_at", 0);
  await set("api_keys", "replaced_at", 1);
  await set("users", "banned_at", 2);
  await set("users", "closed_at", 3);
  market.clock.forward(10 * DAY_MS);
  await round();
  assert.deepEqual(await Promise.all(people.map(countFor)), [0, 0, 0, 0, 1]);
});
