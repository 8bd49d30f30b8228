import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import fc from "fast-check";
import { type Authenticator, enableTwoFactor } from "../../../test/authenticator.ts";
import { runs } from "../../../test/full-size.ts";
import { type Market, openMarket } from "../../../test/market.ts";
import { ApiError } from "../../core/errors.ts";
import { acceptSecondFactor, hasSecondFactor } from "./second-factor.ts";

const MINUTE_MS = 60_000;

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

interface Person {
  userId: string;
  app: Authenticator;
}

async function hasPerson(): Promise<Person> {
  const { userId } = await market.createUser();
  const app = await enableTwoFactor(market, await market.createSession(userId));
  market.clock.forward(MINUTE_MS);
  return { userId, app };
}

type Verdict = "accepted" | "wrong" | { lockedSeconds: number };

async function give({ userId }: Person, code: string): Promise<Verdict> {
  try {
    return (await acceptSecondFactor(market.service.ctx, userId, code)) ? "accepted" : "wrong";
  } catch (error) {
    assert.ok(error instanceof ApiError && error.code === "RATE_LIMIT_EXCEEDED", String(error));
    return { lockedSeconds: error.retryAfterSeconds! };
  }
}

const accepted = (verdicts: Verdict[]) => verdicts.filter((verdict) => verdict === "accepted").length;

suite("a code", () => {
  test("accepted once in its window", async () => {
    const person = await hasPerson();
    const code = person.app.code();
    assert.equal(await give(person, code), "accepted");
    assert.equal(await give(person, code), "wrong");
    market.clock.forward(5_000);
    assert.equal(await give(person, code), "wrong");
    assert.equal(await give(person, person.app.nextCode()), "accepted");
  });

  test("older than an accepted one: refused", async () => {
    const person = await hasPerson();
    const startOfStep = Math.ceil(market.clock.now.getTime() / 30_000) * 30_000;
    market.clock.now = new Date(startOfStep - 3_000);
    const older = person.app.code();
    market.clock.now = new Date(startOfStep + 2_000);
    assert.equal(await give(person, person.app.code()), "accepted");
    assert.equal(await give(person, older), "wrong");
  });

  test("used four, five and eight times at once: accepted exactly once", async () => {
    for (const times of [4, 5, 8]) {
      const person = await hasPerson();
      const code = person.app.code();
      const verdicts = await Promise.all(Array.from({ length: times }, () => give(person, code)));
      assert.equal(accepted(verdicts), 1, `${times} at once`);
    }
  });

  test("our clock is behind the last accepted step: wrong, not an error", async () => {
    const person = await hasPerson();
    assert.equal(await give(person, person.app.code()), "accepted");
    market.clock.forward(-10 * MINUTE_MS);
    assert.equal(await give(person, person.app.code()), "wrong");
    market.clock.forward(10 * MINUTE_MS);
  });

  test("with a space: accepted", async () => {
    const person = await hasPerson();
    assert.equal(await give(person, person.app.code().replace(/(?=\d{3}$)/, " ")), "accepted");
  });

  test("of another account: refused", async () => {
    const [ada, bob] = [await hasPerson(), await hasPerson()];
    assert.equal(await give(bob, ada.app.code()), "wrong");
    assert.equal(await give(bob, ada.app.backupCodes[0]!), "wrong");
  });

  test("for an account without a second factor: refused", async () => {
    const { userId } = await market.createUser();
    assert.equal(await hasSecondFactor(market.service.ctx.db, userId), false);
    for (const code of ["", "000000", "AAAAA-AAAAA-AAAAA-AAAAA-AAAAA"])
      assert.equal(await acceptSecondFactor(market.service.ctx, userId, code), false);
  });
});

suite("a backup code", () => {
  test("works once, also in lower case and without dashes", async () => {
    const person = await hasPerson();
    const [first, second] = person.app.backupCodes as [string, string];
    assert.equal(await give(person, first.replaceAll("-", " ").toLowerCase()), "accepted");
    assert.equal(await give(person, first), "wrong");
    assert.equal(await give(person, second), "accepted");
  });

  test("used eight times at once: accepted exactly once", async () => {
    const person = await hasPerson();
    const verdicts = await Promise.all(
      Array.from({ length: 8 }, () => give(person, person.app.backupCodes[0]!)),
    );
    assert.equal(accepted(verdicts), 1);
  });

  test("used: an email, and an audit entry without the code", async () => {
    const person = await hasPerson();
    await give(person, person.app.backupCodes[0]!);
    const { rows: mails } = await market.query(
      "select m.id, m.sealed_email from emails m join users u on u.email = m.recipient where u.id = $1 order by m.id desc",
      [person.userId],
    );
    const message = JSON.parse(market.service.ctx.vault.open(mails[0].sealed_email, `mail|${mails[0].id}`));
    assert.equal(message.subject, "A backup code was used");
    assert.match(message.text, /You have 9 left/);
    const { rows: deeds } = await market.query(
      "select details from audit_log where actor_id = $1 and action = 'two_factor.backup_code_used'",
      [person.userId],
    );
    assert.deepEqual(deeds, [{ details: { left: 9 } }]);
  });
});

suite("five wrong codes", () => {
  test("lock for 15 minutes, also the right code", async () => {
    const person = await hasPerson();
    for (let n = 0; n < 5; n++) assert.equal(await give(person, person.app.wrongCode()), "wrong");
    assert.deepEqual(await give(person, person.app.code()), { lockedSeconds: 900 });
    assert.deepEqual(await give(person, person.app.backupCodes[0]!), { lockedSeconds: 900 });
    market.clock.forward(15 * MINUTE_MS - 1);
    assert.deepEqual(await give(person, person.app.code()), { lockedSeconds: 1 });
    market.clock.forward(1);
    assert.equal(await give(person, person.app.code()), "accepted");
  });

  test("lock one account only", async () => {
    const [ada, bob] = [await hasPerson(), await hasPerson()];
    for (let n = 0; n < 5; n++) await give(ada, ada.app.wrongCode());
    assert.equal(await give(bob, bob.app.code()), "accepted");
  });

  test("in the audit log once they lock", async () => {
    const person = await hasPerson();
    for (let n = 0; n < 7; n++) await give(person, person.app.wrongCode());
    const { rows } = await market.query(
      "select 1 from audit_log where actor_id = $1 and action = 'two_factor.locked'",
      [person.userId],
    );
    assert.equal(rows.length, 1);
  });

  test("forty guesses at once: five are checked", async () => {
    const person = await hasPerson();
    const verdicts = await Promise.all(
      Array.from({ length: 40 }, () => give(person, person.app.wrongCode())),
    );
    assert.equal(verdicts.filter((verdict) => verdict === "wrong").length, 5);
  });
});

/** The rule of the lock as a model. */
class Model {
  wrong = 0;
  lockedUntil = 0;

  give(isRight: boolean, now: number): Verdict {
    if (now < this.lockedUntil) return { lockedSeconds: Math.ceil((this.lockedUntil - now) / 1000) };
    if (this.wrong >= 5) this.wrong = 0;
    this.wrong = isRight ? 0 : this.wrong + 1;
    if (this.wrong >= 5) this.lockedUntil = now + 15 * MINUTE_MS;
    return isRight ? "accepted" : "wrong";
  }
}

const step = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom("wrong code", "wrong backup code", "used code") },
  { weight: 1, arbitrary: fc.constantFrom("right code", "right backup code") },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 20 * 60 }) },
);

test("random codes in random order: the lock follows the rule", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async (steps) => {
      const person = await hasPerson();
      const model = new Model();
      const { app } = person;
      const usedCode = app.code();
      assert.deepEqual(await give(person, usedCode), model.give(true, market.clock.now.getTime()));
      for (const [at, what] of steps.entries()) {
        if (typeof what === "number") {
          market.clock.forward(what * 1000);
          continue;
        }
        const isRight = what.startsWith("right") && (what === "right code" || app.backupCodes.length > 0);
        const code = {
          "wrong code": () => app.wrongCode(),
          "wrong backup code": () => "AAAAA-AAAAA-AAAAA-AAAAA-AAAAA",
          "used code": () => usedCode,
          "right code": () => app.nextCode(),
          "right backup code": () => app.backupCodes[0] ?? "none",
        }[what]!();
        const expected = model.give(isRight, market.clock.now.getTime());
        assert.deepEqual(await give(person, code), expected, `step ${at}: ${what}`);
        if (expected === "accepted" && what === "right backup code") app.backupCodes.shift();
      }
    }),
    { numRuns: runs(40) },
  );
});
