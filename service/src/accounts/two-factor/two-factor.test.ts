import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { hash } from "@node-rs/argon2";
import { sql } from "kysely";
import { authenticatorOf, enableTwoFactor } from "../../../test/authenticator.ts";
import { dumpDatabase } from "../../../test/dump.ts";
import { waitForBlockedStatements } from "../../../test/locks.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";

const MINUTE_MS = 60_000;
const PATH = "/v1/account/two-factor";

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

async function createSession(): Promise<Client> {
  const { userId } = await market.createUser();
  return market.createSession(userId);
}

async function hasTwoFactor() {
  const session = await createSession();
  const app = await enableTwoFactor(market, session);
  return { session, app };
}

const remove = (session: Client, json: unknown) => session.request("DELETE", PATH, { json });
const state = async (session: Client) => (await session.get(PATH)).body.data;

const deedsOf = async ({ userId }: Client) => {
  const { rows } = await market.query("select action from audit_log where actor_id = $1 order by id", [
    userId,
  ]);
  return rows.map(({ action }) => action);
};

async function subjectsOf({ userId }: Client): Promise<string[]> {
  const { rows } = await market.query(
    "select m.id, m.sealed_email from emails m join users u on u.email = m.recipient where u.id = $1 order by m.id",
    [userId],
  );
  return rows.map(
    (mail) => JSON.parse(market.service.ctx.vault.open(mail.sealed_email, `mail|${mail.id}`)).subject,
  );
}

suite("POST /account/two-factor", () => {
  test("answers secret, otpauth URI and QR code; sign-in asks for no code yet", async () => {
    const session = await createSession();
    const reply = await session.post(PATH);
    assert.equal(reply.status, 201, reply.text);
    const { secret, otpauthUri, qrCode } = reply.body.data;
    assert.match(secret, /^[A-Z2-7]{32}$/);
    assert.equal(new URL(otpauthUri).searchParams.get("secret"), secret);
    assert.match(qrCode, /^data:image\/svg\+xml;base64,/);
    assert.deepEqual(await state(session), { enabled: false, confirmedAt: null, backupCodesLeft: 0 });
  });

  test("repeated before confirmation: a new secret, the first is void", async () => {
    const session = await createSession();
    const first = authenticatorOf(market, (await session.post(PATH)).body.data.secret);
    const second = authenticatorOf(market, (await session.post(PATH)).body.data.secret);
    assertError(
      await session.post(`${PATH}/confirm`, { code: first.code() }),
      422,
      "VALIDATION_ERROR",
      "code",
    );
    assert.equal((await session.post(`${PATH}/confirm`, { code: second.code() })).status, 200);
  });

  test("already on: 409", async () => {
    const { session } = await hasTwoFactor();
    const details = assertError(await session.post(PATH), 409, "INVALID_STATE");
    assert.equal(details.current, "on");
  });

  test("requires a sign-in of the last 15 minutes", async () => {
    const session = await createSession();
    market.clock.forward(15 * MINUTE_MS);
    const details = assertError(await session.post(PATH), 403, "UNAUTHORIZED");
    assert.equal(details.required, "fresh-sign-in");
  });

  test("two accounts: each sealed secret opens only in its own row", async () => {
    const [ada, bob] = [await createSession(), await createSession()];
    const app = authenticatorOf(market, (await ada.post(PATH)).body.data.secret);
    await bob.post(PATH);
    await market.query(
      "update authenticators set sealed_secret = (select sealed_secret from authenticators where user_id = $1) where user_id = $2",
      [ada.userId, bob.userId],
    );
    assertError(await bob.post(`${PATH}/confirm`, { code: app.code() }), 500, "INTERNAL_ERROR");
  });
});

suite("POST /account/two-factor/confirm", () => {
  test("turns it on, answers ten backup codes of 125 bits, with email and audit entry", async () => {
    const { session, app } = await hasTwoFactor();
    assert.equal(new Set(app.backupCodes).size, 10);
    for (const code of app.backupCodes) assert.match(code, /^([A-Z2-7]{5}-){4}[A-Z2-7]{5}$/);
    const confirmedAt = market.clock.now.toISOString();
    assert.deepEqual(await state(session), { enabled: true, confirmedAt, backupCodesLeft: 10 });
    assert.deepEqual(await subjectsOf(session), ["Two-factor authentication is on"]);
    assert.deepEqual(await deedsOf(session), ["two_factor.turned_on"]);
  });

  test("ends other sessions, and makes this one a two-factor session", async () => {
    const { userId } = await market.createUser({ role: "admin" });
    const [session, other] = [await market.createSession(userId), await market.createSession(userId)];
    await enableTwoFactor(market, session);
    assertError(await other.get(PATH), 401, "INVALID_API_KEY");
    const { rows } = await market.query(
      "select second_factor from sessions where user_id = $1 and ended_at is null",
      [userId],
    );
    assert.deepEqual(rows, [{ second_factor: true }]);
  });

  test("the code cannot be used again", async () => {
    const { session, app } = await hasTwoFactor();
    const reply = await session.post(`${PATH}/backup-codes`, { code: app.code() });
    assertError(reply, 422, "VALIDATION_ERROR", "code");
  });

  test("eight times at once: one set of backup codes", async () => {
    const session = await createSession();
    const app = authenticatorOf(market, (await session.post(PATH)).body.data.secret);
    const replies = await Promise.all(
      Array.from({ length: 8 }, () => session.post(`${PATH}/confirm`, { code: app.code() })),
    );
    assert.equal(replies.filter(({ status }) => status === 200).length, 1);
    assert.equal((await state(session)).backupCodesLeft, 10);
  });

  test("five wrong codes: locked, also for the right one", async () => {
    const session = await createSession();
    const app = authenticatorOf(market, (await session.post(PATH)).body.data.secret);
    for (let n = 0; n < 5; n++)
      assertError(
        await session.post(`${PATH}/confirm`, { code: app.wrongCode() }),
        422,
        "VALIDATION_ERROR",
        "code",
      );
    const reply = await session.post(`${PATH}/confirm`, { code: app.code() });
    assertError(reply, 429, "RATE_LIMIT_EXCEEDED");
    assert.equal(reply.headers.get("retry-after"), "900");
  });

  test("no set-up, or already on: 409", async () => {
    const session = await createSession();
    assertError(await session.post(`${PATH}/confirm`, { code: "123456" }), 409, "INVALID_STATE");
    const { session: on, app } = await hasTwoFactor();
    assertError(await on.post(`${PATH}/confirm`, { code: app.nextCode() }), 409, "INVALID_STATE");
  });

  test("a backup code or a malformed code: refused", async () => {
    const session = await createSession();
    await session.post(PATH);
    for (const code of ["AAAAA-AAAAA-AAAAA-AAAAA-AAAAA", "１２３４５６", "12345a"])
      assertError(await session.post(`${PATH}/confirm`, { code }), 422, "VALIDATION_ERROR", "code");
    for (const json of [{}, { code: 123456 }, { code: "1" }, { code: "1".repeat(65) }])
      assertError(await session.post(`${PATH}/confirm`, json), 400, "INVALID_REQUEST", "code");
  });
});

suite("POST /account/two-factor/backup-codes", () => {
  test("replaces the old codes", async () => {
    const { session, app } = await hasTwoFactor();
    const [old] = app.backupCodes;
    const reply = await session.post(`${PATH}/backup-codes`, { code: app.nextCode() });
    assert.equal(reply.status, 200, reply.text);
    assert.equal(reply.body.data.backupCodes.length, 10);
    assertError(await session.post(`${PATH}/backup-codes`, { code: old }), 422, "VALIDATION_ERROR", "code");
    const [fresh] = reply.body.data.backupCodes;
    assert.equal((await session.post(`${PATH}/backup-codes`, { code: fresh })).status, 200);
    assert.deepEqual(await subjectsOf(session), [
      "Two-factor authentication is on",
      "You have new backup codes",
      "A backup code was used",
      "You have new backup codes",
    ]);
  });

  test("off: 409; locked: 429", async () => {
    const off = await createSession();
    assertError(await off.post(`${PATH}/backup-codes`, { code: "123456" }), 409, "INVALID_STATE");
    const { session, app } = await hasTwoFactor();
    for (let n = 0; n < 5; n++) await session.post(`${PATH}/backup-codes`, { code: app.wrongCode() });
    const reply = await session.post(`${PATH}/backup-codes`, { code: app.nextCode() });
    assertError(reply, 429, "RATE_LIMIT_EXCEEDED");
    assert.equal(reply.headers.get("retry-after"), "870");
  });
});

suite("DELETE /account/two-factor", () => {
  test("requires a code and a fresh sign-in, and deletes everything", async () => {
    const { session, app } = await hasTwoFactor();
    assertError(await remove(session, { code: app.wrongCode() }), 422, "VALIDATION_ERROR", "code");
    const reply = await remove(session, { code: app.nextCode() });
    assert.equal(reply.status, 200, reply.text);
    assert.deepEqual(await state(session), { enabled: false, confirmedAt: null, backupCodesLeft: 0 });
    const { rows } = await market.query("select second_factor from sessions where user_id = $1", [
      session.userId,
    ]);
    assert.ok(rows.every(({ second_factor }) => !second_factor));
    assert.equal((await subjectsOf(session)).at(-1), "Two-factor authentication is off");
    assert.equal((await deedsOf(session)).at(-1), "two_factor.turned_off");
    await enableTwoFactor(market, session);
  });

  test("accepts a backup code", async () => {
    const { session, app } = await hasTwoFactor();
    assert.equal((await remove(session, { code: app.backupCodes[3] })).status, 200);
  });

  test("an older sign-in: requires the password, and no code is used up without it", async () => {
    const { session, app } = await hasTwoFactor();
    await market.query("update users set password_hash = $1 where id = $2", [
      await hash("correct horse battery staple"),
      session.userId,
    ]);
    market.clock.forward(16 * MINUTE_MS);
    const code = app.nextCode();
    assert.equal(assertError(await remove(session, { code }), 403, "UNAUTHORIZED").required, "fresh-sign-in");
    const password = "correct horse battery staple";
    assert.equal((await remove(session, { code, password })).status, 200);
  });

  test("a wrong password, also without any: refused, and each guess costs a code", async () => {
    const { session, app } = await hasTwoFactor();
    const code = app.nextCode();
    assertError(await remove(session, { code, password: "guess" }), 422, "VALIDATION_ERROR", "password");
    assertError(await remove(session, { code, password: "guess" }), 422, "VALIDATION_ERROR", "code");
    assert.equal((await state(session)).enabled, true);
  });

  test("off: 409; no code: 400", async () => {
    const session = await createSession();
    assertError(await remove(session, { code: "123456" }), 409, "INVALID_STATE");
    assertError(await remove(session, {}), 400, "INVALID_REQUEST", "code");
  });

  test("twice at once with two right codes: turned off once, one email", async () => {
    const { session, app } = await hasTwoFactor();
    const replies = await Promise.all(
      [app.nextCode(), app.backupCodes[0]].map((code) => remove(session, { code })),
    );
    assert.equal(replies.filter(({ status }) => status === 200).length, 1);
    assert.equal((await subjectsOf(session)).filter((subject) => subject.endsWith("is off")).length, 1);
    assert.equal((await deedsOf(session)).filter((action) => action === "two_factor.turned_off").length, 1);
  });
});

suite("a change of backup codes: locks the app before them, as its removal does", () => {
  const changes: [
    string,
    (session: Client, app: Awaited<ReturnType<typeof enableTwoFactor>>) => Promise<Reply>,
  ][] = [
    ["one is used", (session, app) => remove(session, { code: app.backupCodes[0] })],
    ["new ones", (session, app) => session.post(`${PATH}/backup-codes`, { code: app.nextCode() })],
  ];
  for (const [name, change] of changes)
    test(name, async () => {
      const { session, app } = await hasTwoFactor();
      const { db } = market.service.ctx;
      const { reply } = await db.transaction().execute(async (tx) => {
        await sql`select from backup_codes where user_id = ${session.userId} for update`.execute(tx);
        const reply = change(session, app);
        await waitForBlockedStatements(market);
        await assert.rejects(
          sql`select from authenticators where user_id = ${session.userId} for update nowait`.execute(db),
          /could not obtain lock/,
        );
        return { reply };
      });
      assert.ok((await reply).status < 300, (await reply).text);
    });
});

suite("two-factor endpoints", () => {
  test("a key with every permission: refused", async () => {
    const key = await market.createUser();
    for (const reply of [
      await key.get(PATH),
      await key.post(PATH),
      await key.post(`${PATH}/confirm`, { code: "123456" }),
      await key.post(`${PATH}/backup-codes`, { code: "123456" }),
      await remove(key, { code: "123456" }),
    ])
      assert.equal(assertError(reply, 403, "UNAUTHORIZED").required, "session");
  });

  test("no secret and no backup code in the database or the log", async () => {
    const { session, app } = await hasTwoFactor();
    await session.post(`${PATH}/backup-codes`, { code: app.wrongCode() });
    await remove(session, { code: "00000", password: "an-open-secret" });
    await session.post(`${PATH}/backup-codes`, { code: app.backupCodes[0] });
    const dump = await dumpDatabase(market);
    const secrets = [
      app.secret,
      ...app.backupCodes,
      ...app.backupCodes.map((code) => code.replaceAll("-", "")),
    ];
    for (const secret of [...secrets, "an-open-secret"]) {
      assert.ok(!dump.includes(secret), `${secret} stands in the database`);
      assert.ok(!market.logs.join("\n").includes(secret), `${secret} stands in the log`);
    }
  });
});
