import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import pg from "pg";
import { buyProduct, createDraft, createProduct } from "../../../test/factories.ts";
import { inFullRun, isFullSize, runs } from "../../../test/full-size.ts";
import { waitForBlockedStatements } from "../../../test/locks.ts";
import { assertError, type Client, clientOf, type Market, openMarket } from "../../../test/market.ts";
import { statementsOf } from "../../../test/statements.ts";
import { until } from "../../../test/until.ts";
import type { Service } from "../../app.ts";
import { flushViews } from "./views.ts";

const WITHIN_MS = 1_000;

let market: Market;
let other: Service;
let author: Client;
let reader: Client;
let there: Client;
before(async () => {
  market = await openMarket();
  other = await market.startNode();
  author = await market.createUser({ name: "Author" });
  reader = await market.createUser({ name: "Reader" });
  there = clientOf(other.origin, reader.key);
  await market.waitForNotifications();
});
after(() => market.close());

const nodes = () => [market.service, other];
const titlesOf = async (who: Client, tag: string): Promise<string[]> => {
  const { body, text } = await who.get(`/v1/products?tag=${tag}&limit=100&sort=title&order=asc`);
  assert.ok(body.success, text);
  assert.equal(body.meta.total, body.data.length);
  return body.data.map(({ title }: { title: string }) => title);
};

/** The statements on tables that lists show. */
const listStatementsOf = async (work: () => Promise<unknown>): Promise<string[]> =>
  (await statementsOf(work)).filter((text) => /\b(listings|facet_counts|tag_counts)\b/.test(text));

const change = (id: string, input: object, who = author) => who.patch(`/v1/products/${id}`, input);
const move = async (id: string, action: string, who = author) => {
  const reply = await who.post(`/v1/products/${id}/${action}`);
  assert.equal(reply.status, 200, reply.text);
};

suite("a list under load", () => {
  test("hundreds of requests: one page query and one count", async () => {
    await createProduct(author, { tags: ["hot"], title: "Hot" });
    await market.waitForNotifications();
    const guests = market.as(null);
    const cookie = `__Host-guest=${market.service.ctx.guests.cookie().value}`;
    const questions = await listStatementsOf(async () => {
      // In waves that fit into the queue of connections.
      for (let wave = 0; wave < runs(5); wave++) {
        const replies = await Promise.all(
          Array.from({ length: 200 }, (_, at) =>
            at % 2 ? reader.get("/v1/products?tag=hot") : guests.get("/v1/products?tag=hot", { cookie }),
          ),
        );
        for (const { body } of replies) assert.equal(body.data[0].title, "Hot");
      }
    });
    assert.deepEqual(questions.map((text) => /tag_counts/.test(text)).sort(), [false, true]);
  });

  test("equivalent queries: one entry", async () => {
    const same = ["?", "?limit=20", "?page=1&sort=relevance", "?order=desc&minPrice=0"];
    await reader.get("/v1/products");
    const questions = await listStatementsOf(async () => {
      for (const query of same) await reader.get(`/v1/products${query}`);
    });
    assert.deepEqual(questions, []);
    assert.equal((await listStatementsOf(() => reader.get("/v1/products?limit=19"))).length, 2);
  });

  test("categories with counts: cached, and follow a change", async () => {
    const countOf = async (who: Client) => {
      const { data } = (await who.get("/v1/categories?limit=100")).body;
      return data.find(({ slug }: { slug: string }) => slug === "writing").products;
    };
    const before = await countOf(reader);
    assert.deepEqual(await listStatementsOf(() => countOf(reader)), []);
    await createProduct(author, { category: "writing" });
    assert.equal(await countOf(reader), before + 1);
  });

  test("a client disconnects before the answer: others get theirs", async () => {
    const { pool } = market.service.ctx;
    const blocker = await pool.connect();
    await blocker.query("begin");
    await blocker.query("lock table listings in access exclusive mode");
    const gone = new AbortController();
    const headers = { authorization: `Bearer ${reader.key}` };
    const pending = fetch(`${market.origin}/v1/products?tag=gone`, { headers, signal: gone.signal });
    await waitForBlockedStatements(market);
    gone.abort();
    await assert.rejects(pending);
    await blocker.query("commit");
    blocker.release();
    assert.deepEqual(await titlesOf(reader, "gone"), []);
  });

  test("a query over the time limit: not cached", async () => {
    const { pool } = market.service.ctx;
    const blocker = await pool.connect();
    await blocker.query("begin");
    await blocker.query("lock table listings in access exclusive mode");
    const pending = reader.get("/v1/products?tag=slow");
    const stop =
      "select pg_cancel_backend(pid) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    await until("it was stopped", async () => (await pool.query(stop)).rowCount! > 0);
    assertError(await pending, 503, "SERVICE_UNAVAILABLE");
    await blocker.query("rollback");
    blocker.release();
    assert.deepEqual(await titlesOf(reader, "slow"), []);
  });

  test("a failed query: not cached", async () => {
    await market.query("alter table listings rename to elsewhere");
    try {
      assert.equal((await reader.get("/v1/products?tag=wrong")).status, 500);
    } finally {
      await market.query("alter table elsewhere rename to listings");
    }
    assert.deepEqual(await titlesOf(reader, "wrong"), []);
  });
});

suite("a change", () => {
  /** Each request that changes lists, with the expected titles. */
  const changes: [string, (id: string) => Promise<unknown>, string[]][] = [
    ["of the title", (id) => change(id, { title: "After" }), ["After"]],
    ["of what a filter asks for", (id) => change(id, { tags: ["elsewhere"] }), []],
    ["off the shelf", (id) => move(id, "unpublish"), []],
    ["into nothing", (id) => author.delete(`/v1/products/${id}`), []],
  ];
  for (const [name, act, expected] of changes) {
    test(`${name}: in the next read of its own node, and on the other after the notification`, async () => {
      const tag = `verb ${name}`.slice(0, 40);
      const id = await createProduct(author, { tags: [tag], title: "Before" });
      await market.waitForNotifications();
      assert.deepEqual([await titlesOf(reader, tag), await titlesOf(there, tag)], [["Before"], ["Before"]]);
      await act(id);
      assert.deepEqual(await titlesOf(reader, tag), expected);
      await other.ctx.notifications.catchUp();
      assert.deepEqual(await titlesOf(there, tag), expected);
    });
  }

  test("publishes a product: shown at once where a list was empty", async () => {
    const id = await createDraft(author, { tags: ["new"], title: "New" });
    assert.deepEqual(await titlesOf(reader, "new"), []);
    await move(id, "publish");
    assert.deepEqual(await titlesOf(reader, "new"), ["New"]);
  });

  test("the author's name changes, or the account closes: shown at once", async () => {
    const leaver = await market.createUser({ name: "Before" });
    const session = await market.createSession(leaver.userId);
    await createProduct(leaver, { tags: ["leaver"] });
    const namesOf = async () => {
      const { data } = (await reader.get("/v1/products?tag=leaver")).body;
      return data.map(({ author }: { author: { name: string } }) => author.name);
    };
    assert.deepEqual(await namesOf(), ["Before"]);
    await session.patch("/v1/account", { name: "After" });
    assert.deepEqual(await namesOf(), ["After"]);
    const { email } = (await session.get("/v1/account")).body.data;
    const closed = await session.request("DELETE", "/v1/account", { json: { confirm: email } });
    assert.equal(closed.status, 200, closed.text);
    assert.deepEqual(await namesOf(), []);
  });

  test("a repeated Idempotency-Key on another node: that node shows the change with its answer", async () => {
    const id = await createDraft(author, { tags: ["repeated"], title: "Repeated" });
    const key = { "idempotency-key": "publish once" };
    const publish = (who: Client) => who.post(`/v1/products/${id}/publish`, undefined, key);
    assert.deepEqual(await titlesOf(there, "repeated"), []);
    assert.equal((await publish(author)).status, 200);
    const again = await publish(clientOf(other.origin, author.key));
    assert.equal(again.headers.get("idempotent-replayed"), "true");
    assert.deepEqual(await titlesOf(there, "repeated"), ["Repeated"]);
  });

  test("in the next read of its own node during parallel reads, each time", async () => {
    const id = await createProduct(author, { tags: ["fast"], title: "0" });
    for (let round = 1; round <= (isFullSize ? 200 : 21); round++) {
      const meanwhile = Array.from({ length: round % 7 }, () => titlesOf(reader, "fast"));
      if (round % 3 === 0) await sleep(0);
      await change(id, { title: `${round}` });
      assert.deepEqual(await titlesOf(reader, "fast"), [`${round}`]);
      await Promise.all(meanwhile);
      assert.deepEqual(await titlesOf(reader, "fast"), [`${round}`], "no parallel read restored the old one");
    }
  });

  test("on another node within a second", async () => {
    const id = await createProduct(author, { tags: ["far"], title: "0" });
    for (let round = 1; round <= 5; round++) {
      await titlesOf(there, "far");
      await change(id, { title: `${round}` });
      await until("it shows", async () => (await titlesOf(there, "far"))[0] === `${round}`, WITHIN_MS);
    }
  });

  test("random changes and reads on two nodes: each answer matches the database", async () => {
    const shelf = await Promise.all(
      Array.from({ length: 3 }, (_, at) => createProduct(author, { tags: ["any"], title: `Any ${at}` })),
    );
    const step = fc.record({
      kind: fc.constantFrom("title" as const, "publish" as const, "unpublish" as const, "read" as const),
      product: fc.nat(2),
      title: fc.integer({ min: 10, max: 99 }),
      near: fc.boolean(),
    });
    const clients = () => [author, clientOf(other.origin, author.key)] as const;
    const listedTitles = async () => {
      const { rows } = await market.service.ctx.pool.query<{ title: string }>(
        "select title from products where tags @> '{any}' and status = 'published' order by title",
      );
      return rows.map(({ title }) => title);
    };
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
        for (const { kind, product, title, near } of steps) {
          const [here, far] = near ? clients() : clients().toReversed();
          const meanwhile = [titlesOf(here!, "any"), titlesOf(far!, "any")];
          if (kind === "title") await change(shelf[product]!, { title: `Any ${title}` }, here);
          // A repeated move is refused and changes nothing.
          else if (kind !== "read") await here!.post(`/v1/products/${shelf[product]}/${kind}`);
          assert.deepEqual(await titlesOf(here!, "any"), await listedTitles(), "where it was changed");
          await market.waitForNotifications();
          assert.deepEqual(await titlesOf(far!, "any"), await listedTitles(), "on the other node");
          await Promise.all(meanwhile);
        }
      }),
      { numRuns: isFullSize ? 40 : 4 },
    );
  });
});

suite("a node's connection for notifications is lost", () => {
  const listeners =
    "pg_stat_activity where datname = current_database() and application_name = 'stoa notices'";
  /** PostgreSQL requires another database than the altered one for this statement. */
  const allowConnections = async (allowed: boolean) => {
    const { rows } = await market.service.ctx.pool.query("select current_database() as name");
    const admin = new pg.Client({ connectionString: process.env["STOA_TEST_DATABASE"]! });
    await admin.connect();
    await admin.query(`alter database ${rows[0].name} with allow_connections ${allowed}`);
    await admin.end();
  };
  const cutOff = () => market.service.ctx.pool.query(`select pg_terminate_backend(pid) from ${listeners}`);

  test("nothing is cached, every read queries, until it is back", async () => {
    const id = await createProduct(author, { tags: ["lost"], title: "Before" });
    await market.waitForNotifications();
    await titlesOf(there, "lost");
    assert.deepEqual(await listStatementsOf(() => titlesOf(there, "lost")), [], "it was cached");
    await allowConnections(false);
    try {
      await cutOff();
      await until("the loss is noticed", () => nodes().every(({ ctx }) => !ctx.notifications.areCurrent()));
      for (const { ctx } of nodes()) assert.equal(ctx.listCache.bytes, 0, "it is empty");
      for (const who of [there, reader, there, reader]) {
        assert.equal((await listStatementsOf(() => titlesOf(who, "lost"))).length, 2, "and off");
      }
      // Written past the service, so no notification follows.
      await market.service.ctx.pool.query(
        "update products set card = replace(card, 'Before', 'Past') where title = 'Before'",
      );
      assert.deepEqual(await titlesOf(there, "lost"), ["Past"]);
      await change(id, { title: "After" });
      assert.deepEqual(
        [await titlesOf(reader, "lost"), await titlesOf(there, "lost")],
        [["After"], ["After"]],
      );
    } finally {
      await allowConnections(true);
    }
    await market.waitForNotifications();
    await titlesOf(there, "lost");
    assert.deepEqual(await listStatementsOf(() => titlesOf(there, "lost")), [], "it is cached again");
    await change(id, { title: "Later" });
    await other.ctx.notifications.catchUp();
    assert.deepEqual(await titlesOf(there, "lost"), ["Later"]);
  });

  test(
    "lost repeatedly during changes: none hidden on its own node, nor for a second on another",
    inFullRun,
    async () => {
      const id = await createProduct(author, { tags: ["torn"], title: "0" });
      for (let round = 1; round <= 5; round++) {
        await Promise.all([titlesOf(reader, "torn"), titlesOf(there, "torn")]);
        const [, changed] = await Promise.all([
          cutOff(),
          change(id, { title: `${round}` }).then(() => titlesOf(reader, "torn")),
          titlesOf(there, "torn"),
        ]);
        assert.deepEqual(changed, [`${round}`]);
        await until("it shows", async () => (await titlesOf(there, "torn"))[0] === `${round}`, WITHIN_MS);
        for (let times = 0; times < 5; times++) assert.deepEqual(await titlesOf(there, "torn"), [`${round}`]);
      }
    },
  );
});

suite("counters that change all the time", () => {
  const statsOf = async (tag: string) => (await reader.get(`/v1/products?tag=${tag}`)).body.data[0];

  test("cached for at most five seconds", async () => {
    const id = await createProduct(author, { tags: ["numbers"] });
    await market.waitForNotifications();
    assert.equal((await statsOf("numbers")).stats.purchases, 0);
    const buyer = await market.createUser();
    await buyProduct(buyer, id);
    await buyer.get(`/v1/products/${id}`);
    await buyer.post(`/v1/products/${id}/reviews`, { rating: 4 });
    market.clock.forward(3_999);
    await flushViews(market.service.ctx);
    assert.deepEqual(await listStatementsOf(() => statsOf("numbers")), [], "they were cached");
    market.clock.forward(1_001);
    const { stats, rating } = await statsOf("numbers");
    assert.deepEqual([stats.purchases, stats.views, rating], [1, 1, { average: 4, count: 1 }]);
  });
});

suite("answers that depend on the caller", () => {
  test("an author's own products: never cached, by id or as me, and not shown to others", async () => {
    const guest = market.as(null);
    const cookie = `__Host-guest=${market.service.ctx.guests.cookie().value}`;
    const session = await market.createSession(author.userId);
    await createProduct(author, { tags: ["own"], title: "For sale" });
    await createDraft(author, { tags: ["own"], title: "Secret" });
    const { id } = (await reader.get("/v1/products?tag=own")).body.data[0].author;
    const mine = ["For sale", "Secret"];
    const askers: [string, (query: string) => Promise<string[]>, Record<"me" | "id", string[]>][] = [
      ["author", (query) => titles(author.get(query)), { me: mine, id: mine }],
      ["author's session", (query) => titles(session.get(query)), { me: mine, id: mine }],
      ["reader", (query) => titles(reader.get(query)), { me: [], id: ["For sale"] }],
      ["guest", (query) => titles(guest.get(query, { cookie })), { me: [], id: ["For sale"] }],
    ];
    const titles = async (request: ReturnType<Client["get"]>): Promise<string[]> =>
      (await request).body.data.map(({ title }: { title: string }) => title);
    const asked = fc.record({ asker: fc.nat(3), author: fc.constantFrom("me" as const, "id" as const) });
    await fc.assert(
      fc.asyncProperty(fc.array(asked, { minLength: 2, maxLength: 12 }), async (all) => {
        await market.query("select pg_notify('catalogue', '')");
        const answers = all.map(async ({ asker, author: which }) => {
          const [name, ask, expected] = askers[asker]!;
          const query = `/v1/products?tag=own&sort=title&order=asc&author=${which === "me" ? "me" : id}`;
          const isOwn = asker < 2;
          assert.deepEqual(await ask(query), expected[which], `${name}, ${which}`);
          return isOwn;
        });
        await Promise.all(answers);
      }),
      { numRuns: isFullSize ? 50 : 4 },
    );
    for (const which of ["me", id]) {
      for (const who of [author, session]) {
        const own = `/v1/products?tag=own&author=${which}`;
        await who.get(own);
        assert.equal((await listStatementsOf(() => who.get(own))).length, 2, "read each time");
        assert.equal(
          (await listStatementsOf(() => who.get(`${own}&status=draft`))).length,
          2,
          "read each time",
        );
      }
    }
    const shown = `/v1/products?tag=own&author=${id}`;
    await reader.get(shown);
    assert.deepEqual(
      await listStatementsOf(() => guest.get(shown, { cookie })),
      [],
      "others share what all may see",
    );
  });
});
