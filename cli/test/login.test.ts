import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmod, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import type { Browser } from "@stoa/service/test/browser.ts";
import type { Market } from "@stoa/service/test/market.ts";
import { consent, openOAuthMarket, signedInBrowser } from "@stoa/service/test/oauth.ts";
import { until } from "@stoa/service/test/until.ts";
import { type CommandLine, openCommandLine } from "./stoa.ts";

let market: Market;
let user: Awaited<ReturnType<Market["createUser"]>>;
let email: string;
before(async () => {
  market = await openOAuthMarket();
  user = await market.createUser();
  email = (await user.get("/v1/account")).body.data.email;
});
after(() => market.close());

async function withCommandLine(work: (stoa: CommandLine) => Promise<void>, key?: string): Promise<void> {
  const stoa = await openCommandLine({ origin: market.origin, key });
  try {
    await work(stoa);
  } finally {
    await stoa.remove();
  }
}

const profilesOf = async ({ env }: CommandLine) => {
  const path = join(env["XDG_CONFIG_HOME"]!, "stoa", "profiles.json");
  return { path, file: JSON.parse(await readFile(path, "utf8")) };
};

/** Logs in as a user does: with a browser that is signed in, on the page that the command prints. */
async function logIn(stoa: CommandLine, browser: Browser, decision: "allow" | "deny" = "allow") {
  const login = stoa.start(["login"]);
  const url = await until("the address of the login", () => /^http\S+$/m.exec(login.output.stderr)?.[0]);
  const answer = await consent(browser, new URL(url), decision);
  const redirect = new URL(new URL(url).searchParams.get("redirect_uri")!);
  redirect.search = answer.toString();
  const page = await fetch(redirect);
  assert.match(await page.text(), /return to the terminal/);
  return login.ended;
}

suite("stoa login in the browser", () => {
  test("whoami works with the token, which is renewed; logout ends it on the service", () =>
    withCommandLine(async (stoa) => {
      const { code, stderr } = await logIn(stoa, await signedInBrowser(market, user.userId));
      assert.equal(code, 0, stderr);
      assert.match(stderr, new RegExp(`as ${email}`));
      const { path, file } = await profilesOf(stoa);
      assert.equal((await stat(path)).mode & 0o777, 0o600);
      const first = file.profiles.default.oauth;
      assert.equal((await stoa.run(["whoami", "--fields", "email"])).stdout, `email  ${email}\n`);
      file.profiles.default.oauth.expiresAt = 0;
      await writeFile(path, JSON.stringify(file));
      // At once: only one of them may use the refresh token.
      const both = await Promise.all([stoa.run(["whoami"]), stoa.run(["whoami"])]);
      assert.deepEqual(
        both.map((each) => each.code),
        [0, 0],
        both.map((each) => each.stderr).join(),
      );
      const renewed = (await profilesOf(stoa)).file.profiles.default.oauth;
      assert.notEqual(renewed.accessToken, first.accessToken);
      assert.equal((await stoa.run(["logout"])).code, 0);
      const reply = await fetch(`${market.origin}/v1/account`, {
        headers: { authorization: `Bearer ${renewed.accessToken}` },
      });
      assert.equal(reply.status, 401);
      assert.equal((await stoa.run(["whoami"])).code, 4);
    }));

  test("revoked on the service: exit code 4, and a new login works", () =>
    withCommandLine(async (stoa) => {
      const browser = await signedInBrowser(market, user.userId);
      await logIn(stoa, browser);
      const session = await market.createSession(user.userId);
      for (const { id } of (await session.get("/v1/account/grants")).body.data)
        await session.delete(`/v1/account/grants/${id}`);
      const { code, stderr } = await stoa.run(["whoami"]);
      assert.equal(code, 4, stderr);
      assert.match(stderr, /^error: .*\nfix: .*stoa login/);
      assert.equal((await logIn(stoa, browser)).code, 0);
      assert.equal((await stoa.run(["whoami"])).code, 0);
    }));

  test("the profile changes while a command runs: its new token goes nowhere else", () =>
    withCommandLine(async (stoa) => {
      await logIn(stoa, await signedInBrowser(market, user.userId));
      const { server } = market.service.app;
      const isStreaming = Promise.withResolvers<void>();
      const onRequest = ({ url = "" }) => url.startsWith("/v1/events/stream") && isStreaming.resolve();
      server.on("request", onRequest);
      const command = stoa.start(["events", "tail"]);
      await isStreaming.promise;
      server.off("request", onRequest);
      const { path, file } = await profilesOf(stoa);
      file.profiles.default.baseUrl = "http://127.0.0.1:9/v1";
      await writeFile(path, JSON.stringify(file));
      server.closeAllConnections();
      const { code, stderr } = await command.ended;
      assert.equal(code, 4, stderr);
      assert.match(stderr, /error: The profile default was changed/);
    }));

  test("a command was killed while it held the lock: the next one goes on at once", () =>
    withCommandLine(async (stoa) => {
      await logIn(stoa, await signedInBrowser(market, user.userId));
      const { path, file } = await profilesOf(stoa);
      file.profiles.default.oauth.expiresAt = 0;
      await writeFile(path, JSON.stringify(file));
      const { pid } = spawnSync(process.execPath, ["-e", "0"]);
      await writeFile(`${path}.lock`, `${pid} 0123456789abcdef`);
      assert.equal((await stoa.run(["whoami"])).code, 0);
    }));

  test("denied in the browser: exit code 4, and nothing is stored", () =>
    withCommandLine(async (stoa) => {
      const { code, stderr } = await logIn(stoa, await signedInBrowser(market, user.userId), "deny");
      assert.equal(code, 4);
      assert.match(stderr, /error: The login was denied.*\nfix: /);
      await assert.rejects(profilesOf(stoa), { code: "ENOENT" });
    }));
});

suite("stoa login --api-key", () => {
  test("the key comes from standard input and is shown nowhere", () =>
    withCommandLine(async (stoa) => {
      const args = ["login", "--api-key", "--profile", "ci"];
      const { code, stdout, stderr } = await stoa.start(args, { input: `${user.key}\n` }).ended;
      assert.equal(code, 0, stderr);
      assert.ok(!(stdout + stderr).includes(user.key));
      const profiles = await stoa.run(["profiles"]);
      assert.equal(profiles.stdout, `*\tci\t${email}\t${market.origin}/v1\tAPI key\n`);
      assert.equal((await stoa.run(["whoami"])).code, 0);
    }));

  test("a wrong key: exit code 4, and the earlier profile stays", () =>
    withCommandLine(async (stoa) => {
      await stoa.run(["login", "--api-key"], { input: user.key });
      const { code, stderr } = await stoa.run(["login", "--api-key"], { input: `${user.key}x` });
      assert.equal(code, 4);
      assert.match(stderr, /^error: .*\nfix: /);
      assert.equal((await stoa.run(["whoami"])).code, 0);
    }));

  test("a folder that cannot be written: the error names it and the way out", () =>
    withCommandLine(async (stoa) => {
      const file = join(stoa.folder, "file");
      await writeFile(file, "");
      const env = { XDG_CONFIG_HOME: file };
      const { code, stderr } = await stoa.run(["login", "--api-key"], { input: user.key, env });
      assert.equal(code, 1, stderr);
      assert.match(stderr, /error: Cannot (write|read) \S+file\/stoa/);
      assert.match(stderr, /fix: Set XDG_CONFIG_HOME/);
    }));

  test("a profile that others can read: doctor says so", () =>
    withCommandLine(async (stoa) => {
      await stoa.run(["login", "--api-key"], { input: user.key });
      await chmod((await profilesOf(stoa)).path, 0o644);
      const { code, stdout } = await stoa.run(["doctor"]);
      assert.equal(code, 2);
      assert.match(stdout, /BAD {2}profiles: others can read/);
    }));
});

suite("keys and addresses", () => {
  test("option, then environment, then profile", () =>
    withCommandLine(async (stoa) => {
      const other = await market.createUser();
      const otherEmail = (await other.get("/v1/account")).body.data.email;
      await stoa.run(["login", "--api-key"], { input: user.key });
      const emailBy = async (args: string[], env = {}) =>
        (await stoa.run(["whoami", "--json", "--fields", "email", ...args], { env })).stdout;
      assert.match(await emailBy([]), new RegExp(email));
      assert.match(await emailBy([], { STOA_API_KEY: other.key }), new RegExp(otherEmail));
      assert.match(await emailBy(["--api-key", user.key], { STOA_API_KEY: other.key }), new RegExp(email));
    }));

  test("a key given as an argument: not in the list of processes", () =>
    withCommandLine(async (stoa) => {
      const command = stoa.start(["api", "GET", "/v1/events/stream", "--api-key", user.key]);
      await until("the stream begins", () => command.output.stdout.includes("retry:"));
      const listed = await readFile(`/proc/${command.child.pid}/cmdline`, "utf8");
      command.child.kill("SIGINT");
      const { code, stderr, stdout } = await command.ended;
      assert.ok(!(listed + stderr + stdout).includes(user.key), listed);
      assert.equal(code, 130);
    }));

  test("the profile of another address: its key is not sent there", () =>
    withCommandLine(async (stoa) => {
      await stoa.run(["login", "--api-key"], { input: user.key });
      const { code, stderr } = await stoa.run(["whoami", "--base-url", "http://127.0.0.1:9/v1"]);
      assert.equal(code, 4, stderr);
      assert.match(stderr, /not logged in to http:\/\/127\.0\.0\.1:9/);
    }));
});
