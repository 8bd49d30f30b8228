import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import pg from "pg";
import { createDatabase, TEMPLATE, type TestDatabase } from "../../../test/market.ts";
import { createClient, isDatabaseUnavailable, openPool } from "./database.ts";
import { PrimaryFinder } from "./primary-finder.ts";
import { READ_ONLY_SQL_TRANSACTION } from "./sql-state.ts";

suite("PrimaryFinder", () => {
  let standby: TestDatabase;
  let primary: TestDatabase;
  before(async () => {
    [standby, primary] = [await createDatabase(TEMPLATE), await createDatabase(TEMPLATE)];
  });
  after(async () => {
    await standby.drop();
    await primary.drop();
  });
  const nameOf = (url: string) => new URL(url).pathname.slice(1);
  const setReadOnly = async ({ url }: TestDatabase, value: "on" | "off") => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query("set default_transaction_read_only = off");
    await client.query(`alter database ${nameOf(url)} set default_transaction_read_only = ${value}`);
    await client.end();
  };

  test("an unreachable and a read-only server: skipped", async () => {
    await setReadOnly(standby, "on");
    const urls = ["postgres://127.0.0.1:1/shop", standby.url, primary.url];
    assert.equal(await new PrimaryFinder(urls).find(), primary.url);
    const none = new PrimaryFinder(urls.slice(0, 2));
    await assert.rejects(none.find(), (error) => {
      assert.match((error as Error).message, /127\.0\.0\.1:1: connect ECONNREFUSED .*; .*: is read-only/);
      return isDatabaseUnavailable(error);
    });
    await setReadOnly(standby, "off");
    assert.equal(await none.find(), standby.url);
  });

  test("a connection whose server became read-only: leaves the pool", async () => {
    const pool = openPool({ target: primary.url, maxConnections: 1 });
    const pid = async () => (await pool.query("select pg_backend_pid() as pid")).rows[0].pid;
    const first = await pid();
    assert.equal(await pid(), first);
    const client = await pool.connect();
    await client.query("begin read only");
    await assert.rejects(client.query("create table made_by_a_standby ()"), {
      code: READ_ONLY_SQL_TRANSACTION,
    });
    await client.query("rollback");
    client.release();
    assert.notEqual(await pid(), first);
    await pool.end();
  });

  test("the primary at any position of the list: connections go to it", async () => {
    // Both use the same socket folder; the first port has no socket.
    const { searchParams } = new URL(primary.url);
    const [host, port] = [searchParams.get("host")!, searchParams.get("port")!];
    const client = createClient(
      {
        target: `postgres://postgres@127.0.0.1:1,localhost:${port}${new URL(primary.url).pathname}?host=${encodeURIComponent(host)}`,
      },
      {},
    );
    await client.connect();
    assert.equal((await client.query("select current_database() as name")).rows[0].name, nameOf(primary.url));
    await client.end();
  });
});
