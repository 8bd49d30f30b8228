import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Client, Market } from "../../../test/market.ts";
import {
  createOAuthClient,
  openOAuthMarket,
  registerPublicClient,
  requestTokens,
} from "../../../test/oauth.ts";
import { toId } from "../../core/ids.ts";

let market: Market;
let admin: Client;
before(async () => {
  market = await openOAuthMarket();
  admin = await market.createSession((await market.createUser({ role: "admin" })).userId, {
    secondFactor: true,
  });
});
after(() => market.close());

const list = async (query = "") => (await admin.get(`/v1/admin/oauth-clients?${query}`)).body;
const idsOf = async (query: string) =>
  (await list(query)).data.map(({ clientId }: { clientId: string }) => clientId);

test("GET /admin/oauth-clients: all clients, newest first, by name, id and owner, no secret", async () => {
  const owner = await market.createUser({ name: "Owner" });
  const own = await createOAuthClient(market, owner, { name: "Prompt sync", scopes: ["products:read"] });
  const registered = await registerPublicClient(market, { client_name: "Desk 100%" });
  const user = await market.createUser();
  await requestTokens(market, user.userId, own);
  await requestTokens(market, user.userId, own);

  const { data, meta } = await list();
  assert.equal(meta.total, 2);
  assert.deepEqual(
    data.map((client: Record<string, unknown>) => [client["clientId"], client["owner"], client["grants"]]),
    [
      [registered.id, null, 0],
      [own.id, { id: toId("usr", owner.userId), name: "Owner" }, 1],
    ],
  );
  assert.deepEqual(data[1].scopes, ["products:read"]);
  assert.equal(data[1].registeredFrom, null);
  assert.ok(data[0].registeredFrom);
  assert.ok(!JSON.stringify(data).includes(own.secret!));

  assert.deepEqual(await idsOf("search=SYNC"), [own.id]);
  assert.deepEqual(await idsOf(`search=${own.id}`), [own.id]);
  assert.deepEqual(await idsOf("search=100%25"), [registered.id]);
  assert.deepEqual(await idsOf(`owner=${toId("usr", owner.userId)}`), [own.id]);
  assert.deepEqual(await idsOf("owner=none"), [registered.id]);
  assert.deepEqual(await idsOf("owner=usr_x"), []);
});
