import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { createProduct } from "@stoa/service/test/factories.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { openTerminal, skipWithoutTerminal } from "./pseudo-terminal.ts";
import { type CommandLine, openCommandLine } from "./stoa.ts";

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

suite("in a terminal", { skip: skipWithoutTerminal }, () => {
  test("login by key: asks for it and does not show it", async () => {
    const terminal = openTerminal(stoa, ["login", "--api-key"]);
    await terminal.sees("API key");
    terminal.type(`${user.key}\r`);
    assert.equal(await terminal.ended, 0, terminal.screen());
    assert.match(terminal.screen(), /Logged in to/);
    assert.ok(!terminal.screen().includes(user.key.slice(-8)));
    const file = await readFile(join(stoa.env["XDG_CONFIG_HOME"]!, "stoa", "profiles.json"), "utf8");
    assert.ok(file.includes(user.key));
  });

  test("buy: asks before it pays; Ctrl-C pays nothing, Yes does", async () => {
    const declined = openTerminal(stoa, ["buy", productId]);
    await declined.sees("Buy “Haiku for a rainy day” for USD 4.99?");
    declined.type("\u0003");
    assert.equal(await declined.ended, 130);
    const bought = openTerminal(stoa, ["buy", productId]);
    await bought.sees("Buy “Haiku");
    bought.type("y");
    assert.equal(await bought.ended, 0, bought.screen());
    const table = openTerminal(stoa, ["purchases", "list"]);
    assert.equal(await table.ended, 0);
    assert.match(table.screen(), /^Order +Product +Title +Status +Paid +Bought$/m);
    assert.equal(table.screen().match(/Haiku for a rainy day/g)?.length, 1);
  });

  test("products push: shows what changes and asks; Ctrl-C and No change nothing, Yes does", async () => {
    const env = { STOA_API_KEY: user.key };
    assert.equal((await stoa.run(["init", "haiku"])).code, 0);
    const created = openTerminal(stoa, ["products", "push", "haiku"], env);
    await created.sees("Create this product on 127.0.0.1");
    assert.match(created.screen(), /\+ prompt\.md/);
    created.type("y");
    assert.equal(await created.ended, 0, created.screen());
    const path = join(stoa.folder, "haiku/prompt.md");
    await writeFile(path, (await readFile(path, "utf8")).replace("price: 4.99", "price: 6.5"));
    const id = /prod_\w+/.exec(created.screen())![0];
    const priceAfter = async (key: string, code: number) => {
      const push = openTerminal(stoa, ["products", "push", "haiku"], env);
      await push.sees(`Push this to ${id}`);
      assert.match(push.screen(), /-price: 4\.99\n\+price: 6\.5\n/);
      push.type(key);
      assert.equal(await push.ended, code, push.screen());
      return (await user.get(`/v1/products/${id}`)).body.data.price;
    };
    assert.equal(await priceAfter("\u0003", 130), 4.99);
    assert.equal(await priceAfter("n", 130), 4.99);
    assert.equal(await priceAfter("y", 0), 6.5);
  });

  test("products export: a progress bar, which disappears, and the file", async () => {
    const args = ["products", "export", "--output", "mine.jsonl"];
    const terminal = openTerminal(stoa, args, { STOA_API_KEY: user.key });
    assert.equal(await terminal.ended, 0, terminal.screen());
    assert.match(terminal.screen(), /Wrote mine\.jsonl\.\n$/);
    assert.match(await readFile(join(stoa.folder, "mine.jsonl"), "utf8"), /^\{"id":"prod_/);
  });
});
