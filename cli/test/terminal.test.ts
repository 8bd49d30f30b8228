import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import { createProduct } from "@stoa/service/test/factories.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { until } from "@stoa/service/test/until.ts";
import { type CommandLine, openCommandLine, STOA } from "./stoa.ts";

/** Runs a command in a pseudo-terminal: `script` of util-linux. */
const hasTerminals = spawnSync("script", ["--version"]).status === 0;
const skip = hasTerminals ? false : "needs the command `script` of util-linux";

let market: Market;
let user: Client;
let stoa: CommandLine;
let productId: string;
before(async () => {
  market = await openMarket({ now: () => new Date() });
  const seller = await market.createUser({ role: "seller" });
  productId = await createProduct(seller, { title: "Haiku for a rainy day", price: 4.99 });
  user = await market.createUser();
  stoa = await openCommandLine({ origin: market.origin });
});
after(async () => {
  await stoa?.remove();
  await market.close();
});

/** What a person sees and types. */
function openTerminal(args: string[], env: NodeJS.ProcessEnv = {}) {
  const words = [process.execPath, STOA, ...args].map((part) => `'${part}'`).join(" ");
  const line = `stty cols 120 rows 40; exec ${words}`;
  const child = spawn("script", ["--quiet", "--flush", "--return", "--command", line, "/dev/null"], {
    cwd: stoa.folder,
    env: { ...stoa.env, TERM: "xterm-256color", PAGER: "cat", SHELL: "/bin/sh", ...env },
  });
  let screen = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    screen += text;
  });
  return {
    /** Without what sets colors and moves the cursor. */
    screen: () => stripVTControlCharacters(screen).replaceAll("\r", ""),
    sees(text: string | RegExp) {
      const has = () => (typeof text === "string" ? this.screen().includes(text) : text.test(this.screen()));
      return until(`${text} on the screen`, has, 30_000).catch((error) => {
        throw new Error(`${error.message}\n${this.screen()}`);
      });
    },
    type: (text: string) => child.stdin.write(text),
    ended: new Promise<number | null>((resolve) => child.once("close", resolve)),
    pid: child.pid!,
  };
}

suite("in a terminal", { skip }, () => {
  test("login by key: asks for it and shows no letter of it", async () => {
    const terminal = openTerminal(["login", "--api-key"]);
    await terminal.sees("API key");
    terminal.type(`${user.key}\r`);
    assert.equal(await terminal.ended, 0, terminal.screen());
    assert.match(terminal.screen(), /Logged in to/);
    assert.ok(!terminal.screen().includes(user.key.slice(-8)));
    const file = await readFile(join(stoa.env["XDG_CONFIG_HOME"]!, "stoa", "profiles.json"), "utf8");
    assert.ok(file.includes(user.key));
  });

  test("buy: asks before it pays; Ctrl-C pays nothing, Yes does", async () => {
    const declined = openTerminal(["buy", productId]);
    await declined.sees("Buy “Haiku for a rainy day” for USD 4.99?");
    declined.type("\u0003");
    assert.equal(await declined.ended, 130);
    const bought = openTerminal(["buy", productId]);
    await bought.sees("Buy “Haiku");
    bought.type("y");
    assert.equal(await bought.ended, 0, bought.screen());
    const table = openTerminal(["purchases", "list"]);
    assert.equal(await table.ended, 0);
    assert.match(table.screen(), /^Order +Product +Title +Status +Paid +Bought$/m);
    assert.equal(table.screen().match(/Haiku for a rainy day/g)?.length, 1);
  });
});
