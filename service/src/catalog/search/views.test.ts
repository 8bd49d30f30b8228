import assert from "node:assert/strict";
import { after, before, mock, suite, test } from "node:test";
import { dumpDatabase } from "../../../test/dump.ts";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { inFullRun } from "../../../test/full-size.ts";
import { type Client, clientOf, type Market, openMarket } from "../../../test/market.ts";
import { statementsOf } from "../../../test/statements.ts";
import { createKeyAsOperator } from "../../accounts/api-keys/keys.ts";
import { startService } from "../../app.ts";
import { DAY_MS, HOUR_MS } from "../../core/dates.ts";
import { toUuid } from "../../core/ids.ts";
import { eraseViewers, flushViews, ViewBuffer } from "./views.ts";

const FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const somebodys = { day: "2026-06-15", viewer: "somebody", visitorsAgent: null };

let market: Market;
let author: Client;
before(async () => {
  market = await openMarket();
  author = await market.createUser({ name: "Author" });
});
after(() => market.close());

const read = (who: Client, id: string, headers = {}) => who.get(`/v1/products/${id}`, headers);

const days = async (id: string): Promise<Record<string, number>> => {
  const { rows } = await market.query(
    "select day::text, views from product_daily_views where product_id = $1 order by day",
    [toUuid("prod", id)],
  );
  return Object.fromEntries(rows.map(({ day, views }) => [day, views]));
};

const today = () => market.clock.now.toISOString().slice(0, 10);
const midnight = () => Math.ceil((market.clock.now.getTime() + 1) / DAY_MS) * DAY_MS;
const toMidnight = () => market.clock.forward(midnight() - market.clock.now.getTime());

const visit = (id: string, headers: Record<string, string>) => {
  const { name, value } = market.service.ctx.guests.cookie();
  return market.as(null).get(`/v1/products/${id}`, { cookie: `${name}=${value}`, ...headers });
};

async function viewsOf(id: string): Promise<number> {
  await flushViews(market.service.ctx);
  return (await read(author, id)).body.data.stats.views;
}

test("a viewer, many reads of a product on one UTC day: one view", async () => {
  const id = await createProduct(author);
  const [ann, bob] = [await market.createUser(), await market.createUser()];
  await Promise.all([read(ann, id), read(ann, id), read(bob, id)]);
  assert.equal(await viewsOf(id), 2);
  await read(ann, id);
  assert.equal(await viewsOf(id), 2, "once a day, also when the first look was written long ago");
});

test("a new UTC day: a new view", async () => {
  const id = await createProduct(author);
  const viewer = await market.createUser();
  market.clock.forward(midnight() - 1 - market.clock.now.getTime());
  await read(viewer, id);
  assert.equal(await viewsOf(id), 1);
  market.clock.forward(1);
  await read(viewer, id);
  assert.equal(await viewsOf(id), 2);
});

test("the author: no view; a buyer: a view", async () => {
  const id = await createProduct(author);
  await read(author, id);
  assert.equal(await viewsOf(id), 0);
  const buyer = await market.createUser();
  await buyProduct(buyer, id);
  await read(buyer, id);
  assert.equal(await viewsOf(id), 1);
});

test("a read that is 404: no view", async () => {
  const id = await createProduct(author);
  await author.post(`/v1/products/${id}/unpublish`);
  const viewer = await market.createUser();
  assert.equal((await read(viewer, id)).status, 404);
  assert.equal(await viewsOf(id), 0);
});

test("the author by any session or key: no view", async () => {
  const id = await createProduct(author);
  const granted = { userId: author.userId, name: "another", permissions: ["products:read" as const] };
  const { key } = await createKeyAsOperator(market.service.ctx, granted);
  const session = await market.createSession(author.userId, { secondFactor: true });
  for (const who of [market.as(key), session]) assert.equal((await read(who, id)).status, 200);
  assert.equal(await viewsOf(id), 0);
});

test("an administrator: a view", async () => {
  const id = await createProduct(author);
  const { userId } = await market.createUser({ role: "admin" });
  await read(await market.createSession(userId, { secondFactor: true }), id);
  assert.equal(await viewsOf(id), 1);
});

test("an account: a view with any client; a visitor: only with a browser", async () => {
  const id = await createProduct(author);
  const viewer = await market.createUser();
  await read(viewer, id, { "user-agent": "curl/8.15.0", "sec-purpose": "prefetch" });
  assert.equal(await viewsOf(id), 1);
  for (const agent of [
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "curl/8",
    "",
  ])
    assert.equal((await visit(id, { "user-agent": agent })).status, 200);
  assert.equal(await viewsOf(id), 1);
  await visit(id, { "user-agent": FIREFOX });
  assert.equal(await viewsOf(id), 2);
});

test("a visitor's prefetch: no view", async () => {
  const id = await createProduct(author);
  const hints = [
    { "sec-purpose": "prefetch;prerender" },
    { "sec-purpose": "prefetch" },
    { purpose: "prefetch" },
    { "x-moz": "prefetch" },
  ];
  for (const hint of hints) assert.equal((await visit(id, { "user-agent": FIREFOX, ...hint })).status, 200);
  assert.equal(await viewsOf(id), 0);
});

test("HEAD: no view", async () => {
  const id = await createProduct(author);
  await (await market.createUser()).request("HEAD", `/v1/products/${id}`);
  assert.equal(await viewsOf(id), 0);
});

test("two keys of one account: one viewer", async () => {
  const id = await createProduct(author);
  const viewer = await market.createUser();
  const { key } = await createKeyAsOperator(market.service.ctx, {
    userId: viewer.userId,
    name: "another",
    permissions: ["products:read"],
  });
  await read(viewer, id);
  await read(market.as(key), id);
  assert.equal(await viewsOf(id), 1);
});

test("views: no new ETag, and a 304 is a view", async () => {
  const id = await createProduct(author);
  const [ann, bob] = [await market.createUser(), await market.createUser()];
  const etag = (await read(ann, id)).headers.get("etag")!;
  assert.equal(await viewsOf(id), 1);
  assert.equal((await read(bob, id, { "if-none-match": etag })).status, 304);
  assert.equal(await viewsOf(id), 2);
  assert.equal((await read(ann, id)).headers.get("etag"), etag);
});

test("views: sort the list and show on items", async () => {
  const ids = [
    await createProduct(author, { tags: ["seen"] }),
    await createProduct(author, { tags: ["seen"] }),
  ];
  await read(await market.createUser(), ids[0]!);
  await flushViews(market.service.ctx);
  const { body } = await author.get("/v1/products?tag=seen&sort=views");
  assert.deepEqual(
    body.data.map(({ id, stats }: { id: string; stats: { views: number } }) => [id, stats.views]),
    [
      [ids[0], 1],
      [ids[1], 0],
    ],
  );
});

test("views that could not be written: written next time", async () => {
  const { ctx } = market.service;
  const buffer = new ViewBuffer();
  const productId = toUuid("prod", await createProduct(author))!;
  buffer.add({ productId, ...somebodys });
  await market.query("alter table product_views rename to elsewhere");
  await assert.rejects(buffer.flush(ctx));
  await market.query("alter table elsewhere rename to product_views");
  await buffer.flush(ctx);
  await buffer.flush(ctx);
  const { rowCount } = await market.query("select from product_views where product_id = $1", [productId]);
  assert.equal(rowCount, 1);
});

test("a view of a deleted product: does not block other views", async () => {
  const { ctx } = market.service;
  const buffer = new ViewBuffer();
  const id = await createProduct(author);
  buffer.add({ ...somebodys, productId: "00000000-0000-7000-8000-000000000000" });
  buffer.add({ ...somebodys, productId: toUuid("prod", id)! });
  await buffer.flush(ctx);
  assert.equal(await viewsOf(id), 1);
});

test("buffered views: bounded; a log line reports the dropped ones", inFullRun, async () => {
  const { ctx } = market.service;
  const buffer = new ViewBuffer();
  const id = await createProduct(author);
  const productId = toUuid("prod", id)!;
  for (let at = 0; at < 20_050; at++) buffer.add({ ...somebodys, productId, viewer: `viewer ${at}` });
  buffer.add({ ...somebodys, productId, viewer: "viewer 0" });
  await buffer.flush(ctx);
  assert.equal(await viewsOf(id), 20_000);
  const [line] = market.logs.filter((one) => one.includes("more views than may wait"));
  assert.equal(JSON.parse(line!).lost, 50, "one that waits already is not lost");
});

test("several nodes, one viewer, in parallel too: one view", async () => {
  const ids = await Promise.all(Array.from({ length: 5 }, () => createProduct(author)));
  const { ctx } = market.service;
  const nodes = Array.from({ length: 4 }, () => new ViewBuffer());
  // Each node writes in another order, which must not cause a deadlock.
  for (const [turn, node] of nodes.entries())
    for (let at = 0; at < 200; at++) {
      const id = ids[(at * (turn + 1)) % ids.length]!;
      node.add({ ...somebodys, productId: toUuid("prod", id)!, viewer: `viewer ${at % 40}` });
    }
  await Promise.all(nodes.map((node) => node.flush(ctx)));
  const { rows } = await market.query(
    `select s.views, d.views as "ofDay", (select count(*) from product_views v where v.product_id = s.product_id) as seen
       from product_stats s join product_daily_views d on d.product_id = s.product_id where s.product_id = any ($1::uuid[])`,
    [ids.map((id) => toUuid("prod", id))],
  );
  assert.equal(rows.length, 5);
  for (const { views, ofDay, seen } of rows) assert.deepEqual([views, ofDay], [seen, seen]);
  const { rows: wrong } = await market.query(
    `select * from author_daily_views a full join (
       select p.author_id, d.day, sum(d.views) as views from product_daily_views d join products p on p.id = d.product_id group by 1, 2) as d
     using (author_id, day) where a.views is distinct from d.views`,
  );
  assert.deepEqual(wrong, [], "what an author's products have seen adds up");
});

test("a node stops: writes its buffered views", async () => {
  const id = await createProduct(author);
  const { config, pool, now, log } = market.service.ctx;
  const place = { target: pool.options.connectionString!, maxConnections: 4 };
  const node = await startService(config, place, { now, log });
  const viewer = await market.createUser();
  await clientOf(node.origin, viewer.key).get(`/v1/products/${id}`);
  await node.close();
  assert.equal((await read(author, id)).body.data.stats.views, 1);
});

test("a read: writes nothing before its answer", async () => {
  const ids = await Promise.all(Array.from({ length: 5 }, () => createProduct(author)));
  const viewers = await Promise.all(Array.from({ length: 4 }, () => market.createUser()));
  await Promise.all(viewers.map((viewer) => viewer.get("/v1/products")));
  await flushViews(market.service.ctx);
  let texts: string[] = [];
  // The timer writes all views together; it is stopped to show that reads do not write.
  const { views } = market.service.ctx;
  const add = mock.method(views, "add", () => {});
  try {
    texts = await statementsOf(() =>
      Promise.all(viewers.flatMap((viewer) => ids.map((id) => read(viewer, id)))),
    );
  } finally {
    add.mock.restore();
  }
  assert.equal(add.mock.callCount(), 20);
  assert.ok(texts.length >= 20, "the statements are recorded");
  assert.deepEqual(
    texts.filter((text) => /\b(insert|update|delete|nextval)\b/i.test(text)),
    [],
  );
});

suite("the end of a UTC day", () => {
  test("keeps sums, deletes viewers", async () => {
    const id = await createProduct(author);
    const [ann, bob] = [await market.createUser(), await market.createUser()];
    await Promise.all([read(ann, id), read(bob, id)]);
    assert.equal(await viewsOf(id), 2);
    const day = today();
    toMidnight();
    market.clock.forward(HOUR_MS);
    await eraseViewers(market.service.ctx);
    await eraseViewers(market.service.ctx);
    const left = await market.query(
      "select from product_views where day = $1 union all select from view_salts where day = $1 and sealed_salt is not null",
      [day],
    );
    assert.equal(left.rowCount, 0);
    assert.deepEqual(await days(id), { [day]: 2 });
    await read(ann, id);
    assert.equal(await viewsOf(id), 3, "a viewer of yesterday is one of today");
    assert.deepEqual(await days(id), { [day]: 2, [today()]: 1 });
  });

  test("views still buffered at midnight: counted once", async () => {
    const id = await createProduct(author);
    const [ann, bob] = [await market.createUser(), await market.createUser()];
    const day = today();
    await read(ann, id);
    await flushViews(market.service.ctx);
    market.clock.forward(midnight() - 1 - market.clock.now.getTime());
    await Promise.all([read(ann, id), read(bob, id)]);
    market.clock.forward(1);
    await read(bob, id);
    await eraseViewers(market.service.ctx);
    assert.equal(await viewsOf(id), 3);
    assert.deepEqual(await days(id), { [day]: 2, [today()]: 1 });
  });

  test("a closed day: accepts no view, because its viewers are deleted", async () => {
    const { ctx } = market.service;
    const id = await createProduct(author);
    const [late, early] = [new ViewBuffer(), new ViewBuffer()];
    const view = { ...somebodys, productId: toUuid("prod", id)!, day: today() };
    early.add(view);
    await early.flush(ctx);
    toMidnight();
    market.clock.forward(HOUR_MS);
    await eraseViewers(ctx);
    // One has cached the salt, the other reads it.
    for (const buffer of [early, late]) {
      buffer.add(view);
      await buffer.flush(ctx);
    }
    assert.deepEqual(await days(id), { [view.day]: 1 });
    assert.equal(await viewsOf(id), 1);
  });

  test("many viewers: deleted in batches, all of them", async () => {
    const { ctx } = market.service;
    const [{ day }] = (await market.query("select (max(day) - 400)::text as day from view_salts")).rows;
    const productId = toUuid("prod", await createProduct(author));
    await market.query(
      "insert into product_views select $1::date, $2, sha256(n::text::bytea) from generate_series(1, 12000) n",
      [day, productId],
    );
    await eraseViewers(ctx);
    assert.equal((await market.query("select from product_views where day = $1", [day])).rowCount, 0);
  });
});

test("viewers: neither their id nor an equal digest for two products in the database", async () => {
  const ids = [await createProduct(author), await createProduct(author)];
  const viewer = await market.createUser();
  await Promise.all(ids.map((id) => read(viewer, id)));
  await flushViews(market.service.ctx);
  const { rows } = await market.query(
    "select viewer from product_views where product_id = any ($1::uuid[])",
    [ids.map((id) => toUuid("prod", id))],
  );
  assert.equal(new Set(rows.map((row) => row.viewer.toString("hex"))).size, 2);
  const { rows: salts } = await market.query(
    "select sealed_salt from view_salts where sealed_salt is not null",
  );
  assert.ok(salts.length > 0 && salts.every((row) => row.sealed_salt.startsWith("v1.test.")), "sealed");
  const lines = (await dumpDatabase(market)).split("\n").filter((line) => line.startsWith("product_views "));
  assert.ok(lines.length > 0 && !lines.some((line) => line.includes(viewer.userId)));
});
