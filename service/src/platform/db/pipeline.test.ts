import assert from "node:assert/strict";
import { Socket } from "node:net";
import { after, before, test } from "node:test";
import { sql } from "kysely";
import { type Market, openMarket } from "../../../test/market.ts";
import { askedDuring, costOf } from "../../../test/statements.ts";
import type { Queries } from "./database.ts";
import {
  inPipeline,
  inPipelinedSnapshot,
  inPipelinedTransaction,
  sendInOrder,
  waitForAll,
} from "./pipeline.ts";

let market: Market;
before(async () => {
  market = await openMarket();
  await market.query("create table notes (note text primary key)");
});
after(() => market.close());

const insertNote = (db: Queries, note: string) => sql`insert into notes values (${note})`.execute(db);
const listNotes = async () =>
  (await market.query("select note from notes order by note")).rows.map((row) => row.note);
const pool = () => market.service.ctx.pool;

test("a pipelined transaction: begin and reads, all writes, and the commit are a round trip each", async () => {
  const asked = await askedDuring(() =>
    inPipelinedTransaction(
      pool(),
      (tx) => waitForAll([sql`select 1 as one`.execute(tx), sql`select 2 as two`.execute(tx)]),
      (tx) => waitForAll(["a", "b", "c"].map((note) => insertNote(tx, note))),
    ),
  );
  assert.deepEqual(costOf(asked), { statements: 7, roundTrips: 3, transactions: 1 });
  assert.deepEqual(
    asked.flatMap(({ values }) => values),
    ["a", "b", "c"],
  );
  assert.deepEqual(await listNotes(), ["a", "b", "c"]);
});

test("statements in order: one round trip in a pipeline, one each in another transaction", async () => {
  const read = (tx: Queries) =>
    sendInOrder(tx, [
      () => sql`select 1 as one`.execute(tx),
      () => sql`select 2 as two`.execute(tx),
      () => 3,
    ]);
  let results: unknown[] = [];
  const apart = await askedDuring(() =>
    market.service.ctx.db.transaction().execute(async (tx) => {
      results = await read(tx);
    }),
  );
  assert.deepEqual(costOf(apart), { statements: 4, roundTrips: 4, transactions: 1 });
  assert.equal(results[2], 3);
  const together = await askedDuring(() =>
    inPipelinedTransaction(
      pool(),
      async () => {},
      (tx) => read(tx),
    ),
  );
  assert.deepEqual(costOf(together), { statements: 4, roundTrips: 3, transactions: 1 });
});

/** The system calls by which `work` writes to PostgreSQL: the process has other sockets. The pool lends the client that was released last. */
async function writesDuring(work: () => Promise<unknown>): Promise<number> {
  const client = await pool().connect();
  const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
  client.release();
  const sockets = Socket.prototype as unknown as Record<
    "_write" | "_writev",
    (...args: unknown[]) => unknown
  >;
  const { _write, _writev } = sockets;
  let writes = 0;
  const counted = (write: (...args: unknown[]) => unknown) =>
    function (this: unknown, ...args: unknown[]) {
      if (this === stream) writes++;
      return write.apply(this, args);
    };
  Object.assign(sockets, { _write: counted(_write), _writev: counted(_writev) });
  try {
    await work();
  } finally {
    Object.assign(sockets, { _write, _writev });
  }
  return writes;
}

test("statements that are sent together: written by one system call", async () => {
  const writeThree = () =>
    inPipelinedTransaction(
      pool(),
      (tx) => waitForAll([sql`select 1 as one`.execute(tx), sql`select 2 as two`.execute(tx)]),
      (tx) =>
        sendInOrder(
          tx,
          [1, 2, 3].map((n) => () => sql`select ${n}::int as n`.execute(tx)),
        ),
    );
  await writeThree();
  assert.equal(await writesDuring(writeThree), 3);
});

test("a pipeline without a transaction: one round trip, results in order", async () => {
  const results = await inPipeline(pool(), (db) =>
    waitForAll([sql`select 1 as one`.execute(db), sql`select 2 as two`.execute(db)]),
  );
  assert.deepEqual(
    results.map(({ rows }) => rows),
    [[{ one: 1 }], [{ two: 2 }]],
  );
});

test("a pipelined snapshot: begin and reads in one round trip, later reads see the same moment, writes are refused", async () => {
  const count = (tx: Queries) => sql<{ count: number }>`select count(*) from notes`.execute(tx);
  const asked = await askedDuring(() =>
    inPipelinedSnapshot(pool(), async (tx) => {
      const [before] = await waitForAll([count(tx), sql`select 2 as two`.execute(tx)]);
      await market.query("insert into notes values ('meanwhile')");
      assert.deepEqual((await count(tx)).rows, before.rows);
    }),
  );
  const { connection } = asked[0]!;
  const ofSnapshot = asked.filter((one) => one.connection === connection);
  assert.deepEqual(costOf(ofSnapshot), { statements: 5, roundTrips: 3, transactions: 1 });
  await assert.rejects(
    inPipelinedSnapshot(pool(), (tx) => insertNote(tx, "never")),
    { code: "25006" },
  );
  await market.query("delete from notes where note = 'meanwhile'");
});

test("a pipelined transaction whose second statement fails: throws that error, and writes nothing", async () => {
  const write = inPipelinedTransaction(
    pool(),
    async () => {},
    async (tx) => {
      const twoSteps = insertNote(tx, "first").then(() => insertNote(tx, "after the failure"));
      // Repeated often enough that one of them is the first to be prepared.
      const later = Array.from({ length: 6 }, (_, n) => insertNote(tx, `later ${n}`));
      await waitForAll([twoSteps, insertNote(tx, "a"), ...later]);
    },
  );
  await assert.rejects(write, { code: "23505" });
  assert.deepEqual(await listNotes(), ["a", "b", "c"]);
});

test("a pipelined transaction whose caller ignores a failed statement: throws instead of committing", async () => {
  const write = inPipelinedTransaction(
    pool(),
    async () => {},
    (tx) => Promise.allSettled([insertNote(tx, "d"), insertNote(tx, "a")]),
  );
  await assert.rejects(write, /rolled back/);
  assert.deepEqual(await listNotes(), ["a", "b", "c"]);
});
