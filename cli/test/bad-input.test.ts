import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { type FaultProxy, startFaultProxy } from "../../sdk/test/fault-proxy.ts";
import { type CommandLine, openCommandLine } from "./stoa.ts";

let market: Market;
let proxy: FaultProxy;
let user: Client;
let stoa: CommandLine;
before(async () => {
  market = await openMarket({ now: () => new Date() });
  proxy = await startFaultProxy(market.origin);
  user = await market.createUser();
  stoa = await openCommandLine({ origin: proxy.origin, key: user.key });
});
after(async () => {
  await stoa?.remove();
  await proxy?.close();
  await market.close();
});

interface Expected {
  code: number;
  stderr: RegExp;
}

/** A command must fail in this way, with a fix and without its key. */
async function assertFails(args: string[], { code, stderr }: Expected, env: NodeJS.ProcessEnv = {}) {
  const ended = await stoa.run(args, { env });
  assert.equal(ended.code, code, ended.stderr);
  assert.match(ended.stderr, stderr);
  assert.match(ended.stderr, /^fix: \S/m);
  assert.ok(!ended.stderr.includes(user.key), ended.stderr);
  assert.equal(ended.stdout, "");
}

suite("answers that are not the service's", () => {
  const html = { body: "<!doctype html><title>Log in</title>", headers: { "content-type": "text/html" } };
  const expectations: Record<string, [FaultProxy["decide"], RegExp]> = {
    "a page of HTML": [() => ({ status: 200, ...html }), /a page of HTML.*\nfix: Check --base-url/],
    "a proxy's error page": [() => ({ status: 403, ...html }), /answered 403 with a page of HTML/],
    "a cut response": [() => ({ cutAfterBytes: 20 }), /^error: /],
  };
  for (const [name, [fault, stderr]] of Object.entries(expectations))
    test(`${name}: exit code 2`, async () => {
      proxy.decide = fault;
      await assertFails(["whoami"], { code: 2, stderr });
      proxy.decide = () => "pass";
      assert.equal((await stoa.run(["whoami"])).code, 0, "a repeat works");
    });
});

suite("addresses", () => {
  test("nothing listens there: exit code 2", () =>
    assertFails(
      ["whoami"],
      { code: 2, stderr: /ECONNREFUSED\nfix: Is the service running/ },
      { STOA_BASE_URL: "http://127.0.0.1:9999/v1" },
    ));
  test("no URL: exit code 1, and an example", () =>
    assertFails(["whoami", "--base-url", "shop"], {
      code: 1,
      stderr: /"shop" is no http or https URL\nfix: .*\/v1/,
    }));
  test("another path of the service: exit code 2", () =>
    assertFails(["whoami", "--base-url", `${market.origin}/docs`], { code: 2, stderr: /^error: / }));
});

test("a clock that is an hour off: doctor says so", async () => {
  const date = new Date(Date.now() - 3_600_000).toUTCString();
  proxy.decide = (n) => (proxy.requests[n]?.url === "/readyz" ? { status: 200, headers: { date } } : "pass");
  const { code, stdout } = await stoa.run(["doctor"]);
  proxy.decide = () => "pass";
  assert.equal(code, 2);
  assert.match(stdout, /^BAD {2}clock: this machine is 36\d\d s ahead of the service/m);
  assert.match(stdout, /^ok {3}account: /m);
});

suite("keys", () => {
  test("a revoked key: exit code 4", async () => {
    const other = await market.createUser();
    await market.query("update api_keys set revoked_at = now() where user_id = $1", [other.userId]);
    await assertFails(["whoami"], { code: 4, stderr: /fix: .*stoa login/ }, { STOA_API_KEY: other.key });
  });
  test("a key with a letter that no key has: exit code 1", () =>
    assertFails(["whoami"], { code: 1, stderr: /apiKey has a character/ }, { STOA_API_KEY: "stoa_…" }));
  test("a permission that the key lacks: exit code 2", async () => {
    const limited = await market.createUser({ permissions: ["products:read"] });
    await assertFails(["webhooks", "list"], { code: 2, stderr: /permission/ }, { STOA_API_KEY: limited.key });
  });
});

suite("profiles", () => {
  test("a file that is not JSON: names it, and a login after its removal works", async () => {
    const other = await openCommandLine({ origin: market.origin });
    await other.run(["login", "--api-key"], { input: user.key });
    const path = join(other.env["XDG_CONFIG_HOME"]!, "stoa", "profiles.json");
    const text = await readFile(path, "utf8");
    await writeFile(path, text.slice(0, 20));
    const { code, stderr } = await other.run(["whoami"]);
    await other.remove();
    assert.equal(code, 1);
    assert.match(stderr, /profiles\.json is not JSON\nfix: /);
  });
});

suite("options", () => {
  const cases: [string[], RegExp][] = [
    [["whoamy"], /unknown command 'whoamy'\n\(Did you mean whoami\?\)/],
    [["whoami", "--jsom"], /unknown option '--jsom'/],
    [["purchases", "list", "--limit", "0"], /"0" is not a whole number from 1 on/],
    [["whoami", "--fields", "nothing"], /There is no field nothing\nfix: The fields are: id, /],
    [["webhooks", "create", "--from", "missing.yaml"], /Cannot read missing\.yaml: ENOENT/],
    [["webhooks", "create", "-f", "url"], /--field "url" has no name\nfix: Write it as name=value/],
  ];
  for (const [args, stderr] of cases)
    test(`stoa ${args.join(" ")}: exit code 1`, async () => {
      const ended = await stoa.run(args);
      assert.equal(ended.code, 1, ended.stderr);
      assert.match(ended.stderr, stderr);
    });
});
