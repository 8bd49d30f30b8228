import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { isSignedIn, sessionIdOf, uniqueEmail } from "../../../test/emails.ts";
import { type Market, openMarket } from "../../../test/market.ts";
import { toId, toUuid } from "../../core/ids.ts";

const run = promisify(execFile);
const program = new URL("../../../bin/stoa-server.mjs", import.meta.url).pathname;

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

/** Runs the CLI on the market's database with its keys. */
async function command(...args: string[]): Promise<string> {
  const { config, pool } = market.service.ctx;
  const { stdout } = await run(process.execPath, [program, ...args], {
    env: {
      PATH: process.env["PATH"],
      DATABASE_URL: pool.options.connectionString,
      STOA_MASTER_KEYS: config.masterKeys
        .map(({ id, bytes }) => `${id}:${bytes.toString("base64")}`)
        .join(","),
      STOA_SESSION_KEYS: config.sessionKeys.map((bytes) => `1:${bytes.toString("base64")}`).join(","),
    },
  });
  return stdout;
}

test("createOperatorSession: creates a user with a password, and a session without a second factor", async () => {
  const email = uniqueEmail();
  const password = "correct horse battery staple";
  const made = JSON.parse(
    await command("user", "create", "--email", email, "--name", "Ada", "--password", password, "--json"),
  );
  const loggedIn = await market.as(null).post("/api/auth/login", { email, password });
  assert.equal(loggedIn.status, 200, loggedIn.text);

  const { sessionToken } = JSON.parse(await command("session", "create", "--user", made.id, "--json"));
  // The CLI uses the real clock.
  market.clock.now = new Date();
  assert.ok(await isSignedIn(market.as(sessionToken)));
  const { rows } = await market.query("select via, second_factor, user_id from sessions where id = $1", [
    toUuid("ses", sessionIdOf(sessionToken)),
  ]);
  assert.deepEqual(rows, [{ via: "operator", second_factor: false, user_id: toUuid("usr", made.id) }]);
  const audit = await market.query(
    "select actor_id, target_id, details from audit_log where details->>'via' = 'operator'",
  );
  assert.deepEqual(audit.rows, [{ actor_id: null, target_id: made.id, details: { via: "operator" } }]);
});

test("createOperatorSession, a weak password or a banned user: refused", async () => {
  const email = uniqueEmail();
  await assert.rejects(
    command("user", "create", "--email", email, "--name", "Ada", "--password", "12345678"),
    /password: is among the first/,
  );
  const { userId } = await market.createUser();
  await market.query("update users set banned_at = now() where id = $1", [userId]);
  await assert.rejects(command("session", "create", "--user", toId("usr", userId)), /banned or closed/);
});
