import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { waitForBlockedStatements } from "../../../test/locks.ts";
import { assertError, type Client } from "../../../test/market.ts";
import { HOUR_MS, openWebhookMarket } from "../../../test/webhooks.ts";
import { deleteWebhookLog, deleteWebhookLogJob } from "./closed-account.ts";

const { deliver, happens, hasEndpoint, market, receiver } = await openWebhookMarket();
let owner: Client;
beforeEach(async () => {
  owner = await market.createUser();
});

const url = "https://hooks.example.com/stoa";

test("closed account: its endpoints and secrets are deleted, and nothing is sent", async () => {
  receiver.answer = 500;
  await hasEndpoint(owner);
  await hasEndpoint(owner, { enabled: false });
  await happens(owner);
  await deliver();
  const session = await market.createSession(owner.userId);
  const { email } = (await session.get("/v1/account")).body.data;
  const closed = await session.request("DELETE", "/v1/account", { json: { confirm: email } });
  assert.equal(closed.status, 200, closed.text);
  market.clock.forward(24 * HOUR_MS);
  await happens(owner, "later");
  await deliver();
  assert.equal(receiver.received.length, 1);
  const { rows } = await market.query(
    `select (select count(*) from webhook_endpoints where deleted_at is null) as endpoints,
            (select count(*) from webhook_secrets) as secrets,
            (select string_agg(status, ',' order by id) from webhook_deliveries where attempts > 0) as deliveries`,
  );
  assert.deepEqual(rows, [{ endpoints: 0, secrets: 0, deliveries: "canceled" }]);
});

test("closed account: its delivery log is deleted by a job", async () => {
  receiver.answer = (response) => response.writeHead(500).end("ANSWERMARK");
  const other = await market.createUser();
  for (const who of [owner, other]) {
    await hasEndpoint(who, { url: `${receiver.url}/PATHMARK` });
    await happens(who);
  }
  await deliver();
  const session = await market.createSession(owner.userId);
  const { email } = (await session.get("/v1/account")).body.data;
  await session.request("DELETE", "/v1/account", { json: { confirm: email } });
  const { rows: jobs } = await market.query(
    "select from pgboss.job where name = $1 and data ->> 'userId' = $2",
    [deleteWebhookLogJob.name, owner.userId],
  );
  assert.equal(jobs.length, 1);
  await deleteWebhookLog(market.service.ctx, owner.userId, new AbortController().signal);
  const { rows } = await market.query(
    `select e.user_id as "userId", a.url, a.response_body as answer from webhook_attempts a
       join webhook_deliveries d on d.id = a.delivery_id right join webhook_endpoints e on e.id = d.endpoint_id`,
  );
  assert.deepEqual(rows, [{ userId: other.userId, url: `${receiver.url}/PATHMARK`, answer: "ANSWERMARK" }]);
});

test("account without endpoints: can be closed", async () => {
  const session = await market.createSession(owner.userId);
  const { email } = (await session.get("/v1/account")).body.data;
  const closed = await session.request("DELETE", "/v1/account", { json: { confirm: email } });
  assert.equal(closed.status, 200, closed.text);
});

test("endpoint created while its account is closing: does not remain", async () => {
  const session = await market.createSession(owner.userId);
  const { email } = (await session.get("/v1/account")).body.data;
  const locker = await market.service.ctx.pool.connect();
  try {
    await locker.query("begin");
    await locker.query("select from users where id = $1 for update", [owner.userId]);
    const closing = session.request("DELETE", "/v1/account", { json: { confirm: email } });
    await waitForBlockedStatements(market);
    const making = owner.post("/v1/webhooks", { url });
    await waitForBlockedStatements(market, 2);
    await locker.query("commit");
    assert.equal((await closing).status, 200);
    assertError(await making, 401, "INVALID_API_KEY");
  } finally {
    locker.release();
  }
  const { rows } = await market.query("select from webhook_endpoints where deleted_at is null");
  assert.equal(rows.length, 0);
});
