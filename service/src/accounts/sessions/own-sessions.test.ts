import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { decodeJwt } from "jose";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { DAY_MS } from "../../core/dates.ts";
import { toId } from "../../core/ids.ts";

let market: Market;
let userId: string;
before(async () => {
  market = await openMarket();
});
beforeEach(async () => {
  userId = (await market.createUser()).userId;
});
after(() => market.close());

const signIn = async (secondFactor = false) => {
  market.clock.forward(1_000);
  return market.createSession(userId, { secondFactor });
};
const idOf = ({ key }: Client) => decodeJwt(key).jti!;
const listed = async (client: Client) => (await client.get("/v1/account/sessions")).body;
const isLive = async (client: Client) => (await client.get("/v1/account")).status === 200;

test("GET /account/sessions: newest first, with their origin, the current one marked", async () => {
  const [first, second] = [await signIn(), await signIn(true)];
  const { data, meta } = await listed(first);
  assert.equal(meta.total, 2);
  assert.deepEqual(
    data.map(({ id, secondFactor, current }: Record<string, unknown>) => ({ id, secondFactor, current })),
    [
      { id: idOf(second), secondFactor: true, current: false },
      { id: idOf(first), secondFactor: false, current: true },
    ],
  );
  const { via, ip, userAgent, createdAt, lastSeenAt } = data[0];
  assert.deepEqual([via, ip, userAgent], ["operator", "127.0.0.1", null]);
  assert.deepEqual([createdAt, lastSeenAt], [market.clock.now.toISOString(), market.clock.now.toISOString()]);
});

test("GET /account/sessions: no foreign, ended, expired or idle session", async () => {
  const stranger = await market.createUser();
  await market.createSession(stranger.userId);
  const expired = await signIn();
  market.clock.forward(13 * DAY_MS);
  await isLive(expired);
  await signIn();
  market.clock.forward(13 * DAY_MS);
  await isLive(expired);
  market.clock.forward(4 * DAY_MS);
  const ended = await signIn();
  const present = await signIn();
  await present.delete(`/v1/account/sessions/${idOf(ended)}`);
  const { data } = await listed(present);
  assert.deepEqual(
    data.map(({ id }: { id: string }) => id),
    [idOf(present)],
  );
});

test("GET /account/sessions: has pages", async () => {
  const present = await signIn();
  for (let count = 0; count < 4; count++) await signIn();
  const { body, headers } = await present.get("/v1/account/sessions?limit=2&page=3");
  assert.deepEqual([body.data.length, body.data[0].current, body.meta.total], [1, true, 5]);
  assert.match(headers.get("link")!, /rel="prev"/);
});

test("DELETE /account/sessions: ends all but the current one and returns their number", async () => {
  const [one, two, present] = [await signIn(), await signIn(), await signIn()];
  const reply = await present.delete("/v1/account/sessions");
  assert.deepEqual(reply.body.data, { ended: 2 });
  assert.deepEqual([await isLive(one), await isLive(two), await isLive(present)], [false, false, true]);
  assert.deepEqual((await present.delete("/v1/account/sessions")).body.data, { ended: 0 });
});

test("DELETE /account/sessions/:sessionId: ends that session; a repeat is 404", async () => {
  const [lost, present] = [await signIn(), await signIn()];
  const path = `/v1/account/sessions/${idOf(lost)}`;
  assert.deepEqual((await present.delete(path)).body.data, { id: idOf(lost), ended: true });
  assert.deepEqual([await isLive(lost), await isLive(present)], [false, true]);
  assertError(await present.delete(path), 404, "SESSION_NOT_FOUND");
});

test("DELETE of the current session: it ends, and its cookie is cleared", async () => {
  const present = await signIn();
  const reply = await present.delete(`/v1/account/sessions/${idOf(present)}`);
  assert.equal(reply.status, 200);
  assert.match(reply.headers.get("set-cookie")!, /^__Host-session=; Max-Age=0; Path=\/; HttpOnly; Secure/);
  assertError(await present.get("/v1/account"), 401, "INVALID_API_KEY");
});

test("DELETE of another account's session, or an unknown id: 404, nothing ends", async () => {
  const present = await signIn();
  const other = await market.createSession((await market.createUser()).userId);
  for (const id of [idOf(other), "x", "ses_", toId("usr", userId), decodeJwt(present.key).sub!])
    assertError(await present.delete(`/v1/account/sessions/${id}`), 404, "SESSION_NOT_FOUND");
  assert.deepEqual([await isLive(other), await isLive(present)], [true, true]);
});

test("an ended session: in the audit log", async () => {
  const [lost, present] = [await signIn(), await signIn()];
  await present.delete(`/v1/account/sessions/${idOf(lost)}`);
  await present.delete("/v1/account/sessions");
  const { rows } = await market.query(
    "select action, target_id, details, ip from audit_log where actor_id = $1 order by id",
    [userId],
  );
  assert.deepEqual(rows, [
    { action: "session.ended", target_id: idOf(lost), details: {}, ip: "127.0.0.1" },
    { action: "session.ended", target_id: null, details: { which: "others", ended: 0 }, ip: "127.0.0.1" },
  ]);
});
