import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { buyProduct, createProduct } from "@stoa/service/test/factories.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { type ProviderServer, startProviderServer } from "@stoa/service/test/provider-server.ts";
import { createProviderKey, newestRun, providersAt } from "@stoa/service/test/runs.ts";
import { becomes, until } from "@stoa/service/test/until.ts";
import { openTerminal, skipWithoutTerminal } from "./pseudo-terminal.ts";
import { type CommandLine, openCommandLine } from "./stoa.ts";

let market: Market;
let provider: ProviderServer;
let seller: Client;
let buyer: Client;
let stoa: CommandLine;
let haiku: string;
before(async () => {
  provider = await startProviderServer();
  market = await openMarket({ providers: providersAt(provider), now: () => new Date() });
  seller = await market.createUser();
  buyer = await market.createUser();
  stoa = await openCommandLine({ origin: market.origin, key: buyer.key });
  haiku = await createProduct(seller, { title: "Haiku about anything" });
  await buyProduct(buyer, haiku);
});
after(async () => {
  await stoa.remove();
  await market.close();
  await provider.close();
});

suite("stoa run", () => {
  test("the output goes to standard output, exactly; key and usage to standard error", async () => {
    await writeFile(join(stoa.folder, "topic.txt"), "the\nsea");
    const args = ["run", "haiku-about", "--var-file", "topic=topic.txt", "--model", "sandbox-echo"];
    const [streamed, whole, json] = await Promise.all([
      stoa.run(args),
      stoa.run([...args, "--no-stream", "--var", "language=a=b"]),
      stoa.run([...args, "--json", "--key", "sandbox"]),
    ]);
    assert.equal(streamed.code, 0, streamed.stderr);
    assert.match(streamed.stdout, /Write a haiku about the\nsea in English\.$/);
    assert.match(streamed.stderr, /^No valid key of openai, anthropic: using the sandbox/);
    assert.match(streamed.stderr, /sandbox sandbox-echo · \d+ \+ \d+ tokens, USD 0 · [\d.]+ s · exec_\w+\n$/);
    assert.match(whole.stdout, /in a=b\.$/);
    assert.equal(json.code, 0, json.stderr);
    const result = JSON.parse(json.stdout);
    assert.equal(result.output, streamed.stdout);
    assert.ok(!json.stderr.includes("No valid key"));
  });

  test("without --key: the newest valid key of a provider that fits; --provider chooses", async () => {
    const caller = await market.createUser();
    const product = await createProduct(caller, { title: "Mine" });
    await createProviderKey(caller, { provider: "anthropic" });
    const run = (...more: string[]) =>
      stoa.run(["run", product, "--var", "topic=rain", "--json", ...more], {
        env: { STOA_API_KEY: caller.key },
      });
    const none = await run("--provider", "mistral");
    assert.equal(none.code, 2);
    assert.match(none.stderr, /no valid key of mistral.*\nfix: .*stoa keys add mistral/);
    await createProviderKey(caller, { provider: "openai" });
    const [newest, chosen] = await Promise.all([run(), run("--provider", "anthropic")]);
    const providerOf = ({ stdout, stderr }: typeof newest) => {
      assert.ok(stdout, stderr);
      return JSON.parse(stdout).metadata.provider;
    };
    assert.deepEqual([providerOf(newest), providerOf(chosen)], ["openai", "anthropic"]);
  });

  test("missing variables: an error that names each", async () => {
    const { code, stdout, stderr } = await stoa.run(["run", haiku]);
    assert.deepEqual([code, stdout], [1, ""]);
    assert.match(stderr, /^error: Variables are missing:\n {2}topic\nfix: Give them: --var topic=…\n$/);
  });

  test("what cannot be run: not owned, several, none, a workflow", async () => {
    const foreign = await createProduct(seller, { title: "Sonnet for the queen" });
    await buyProduct(buyer, await createProduct(seller, { title: "Ode to a bird" }));
    await buyProduct(buyer, await createProduct(seller, { title: "Ode to a tree" }));
    const [notOwned, several, none] = await Promise.all(
      [foreign, "ode to", "zyxwv"].map((product) => stoa.run(["run", product])),
    );
    assert.deepEqual([notOwned?.code, several?.code, none?.code], [2, 2, 2]);
    assert.match(notOwned!.stderr, new RegExp(`do not own.*\nfix: Buy it: stoa buy ${foreign}`));
    assert.match(several!.stderr, /Ode to a tree\n.*Ode to a bird\nfix: Name one/s);
    assert.match(none!.stderr, /No product is found/);
  });

  test("a run that fails: exit code 2, with its code", async () => {
    const args = ["run", haiku, "--key", "sandbox", "--var", "topic=rain", "--model"];
    const [failed, unknown] = await Promise.all([
      stoa.run([...args, "sandbox-500"]),
      stoa.run(["run", haiku, "--key", "pkey_00000000000000000000000000", "--var", "topic=rain"]),
    ]);
    assert.deepEqual([failed.code, unknown.code], [2, 2]);
    assert.match(failed.stderr, /^error: The run exec_\w+ failed: .* \(PROVIDER_ERROR\)\nfix: http/);
    assert.match(unknown.stderr, /^error: .*key/i);
  });

  test("Ctrl-C: cancels the run and exits with 130", async () => {
    const command = stoa.start([
      ...["run", haiku, "--key", "sandbox", "--var", "topic=rain", "--model", "sandbox-slow"],
    ]);
    await until("the output begins", () => command.output.stdout !== "");
    command.child.kill("SIGINT");
    const { code, stderr } = await command.ended;
    assert.equal(code, 130, stderr);
    const { id, status } = await becomes(
      () => newestRun(buyer),
      (run) => run.status !== "running",
    );
    assert.equal(status, "canceled");
    assert.match(stderr, new RegExp(`Canceled: ${id}\n$`));
  });

  test("a reader that leaves: ends quietly", async () => {
    const command = stoa.start([
      ...["run", haiku, "--key", "sandbox", "--var", "topic=rain", "--model", "sandbox-slow"],
    ]);
    await until("the output begins", () => command.output.stdout !== "");
    command.child.stdout.destroy();
    const { code, stderr } = await command.ended;
    assert.deepEqual([code, stderr], [0, ""]);
  });
});

test("stoa executions list and get: what ran", async () => {
  await stoa.run(["run", haiku, "--key", "sandbox", "--var", "topic=the moon"]);
  const { id } = await newestRun(buyer);
  const [list, get] = await Promise.all([
    stoa.run(["executions", "list", "--status", "completed", "--limit", "1", "--fields", "id,status"]),
    stoa.run(["executions", "get", id]),
  ]);
  assert.equal(list.stdout, `${id}\tcompleted\n`);
  assert.match(get.stdout, /variables +\{"topic":"the moon"/);
});

test("stoa run in a terminal: asks for the variables, with their defaults", {
  skip: skipWithoutTerminal,
}, async () => {
  const terminal = openTerminal(stoa, ["run", haiku, "--key", "sandbox", "--model", "sandbox-echo"]);
  await terminal.sees("topic (required)");
  terminal.type("rain\r");
  await terminal.sees("language (optional)");
  terminal.type("\r");
  assert.equal(await terminal.ended, 0, terminal.screen());
  assert.match(terminal.screen(), /Write a haiku about rain in English\.\nsandbox sandbox-echo · /);
});
