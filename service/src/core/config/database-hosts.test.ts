import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { databaseHosts, splitDatabaseUrl } from "./database-hosts.ts";

suite("splitDatabaseUrl", () => {
  test("several servers: each URL has user, database and parameters", () => {
    assert.deepEqual(
      splitDatabaseUrl(
        "postgres://a:b%40c@one,two:5433,[::1]:5434/shop?sslmode=require&target_session_attrs=read-write",
      ),
      [
        "postgres://a:b%40c@one/shop?sslmode=require",
        "postgres://a:b%40c@two:5433/shop?sslmode=require",
        "postgres://a:b%40c@[::1]:5434/shop?sslmode=require",
      ],
    );
    assert.deepEqual(splitDatabaseUrl("postgresql://one/shop?target_session_attrs=primary"), [
      "postgresql://one/shop",
    ]);
    assert.equal(databaseHosts("postgres://a:secret@one,two:5433/shop?password=secret"), "one,two:5433");
  });

  test("an invalid URL: refused with the reason", () => {
    for (const [url, why] of [
      ["mysql://one/shop", /begins with postgres:\/\//],
      ["postgres://one,two:port/shop", /has the host "two:port"/],
      ["postgres://one,,two/shop", /empty host/],
      [
        "postgres://one,two/shop?target_session_attrs=standby",
        /target_session_attrs=standby; the service writes/,
      ],
    ] as const)
      assert.throws(() => splitDatabaseUrl(url), why);
  });
});
