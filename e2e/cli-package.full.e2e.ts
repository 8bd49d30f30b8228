import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { createProduct } from "@stoa/service/test/factories.ts";
import { type Market, openMarket } from "@stoa/service/test/market.ts";
import { installCommandLine } from "./packages.ts";
import { shell, temporaryFolder } from "./service-process.ts";

const RUNTIMES = new URL("./runtimes/node_modules/", import.meta.url).pathname;

let market: Market;
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
before(async () => {
  market = await openMarket({ now: () => new Date() });
  await createProduct(await market.createUser(), { title: "Haiku about rain" });
  folder = await temporaryFolder();
  await installCommandLine(folder.path);
});
after(async () => {
  await market.close();
  await folder.remove();
});

suite("the packed command line", () => {
  test("installs alone, with the licenses of what it bundles", async () => {
    assert.deepEqual(await readdir(join(folder.path, "node_modules/@stoa")), ["cli"]);
    const modules = await readdir(join(folder.path, "node_modules"));
    assert.deepEqual(
      modules.filter((name) => !name.startsWith(".")),
      ["@stoa"],
    );
    const { stdout } = await shell(`cat ${folder.path}/node_modules/@stoa/cli/dist/licenses.txt`, {});
    for (const name of ["commander", "yaml", "oauth4webapi"])
      assert.match(stdout, new RegExp(`^${name} \\d`, "m"));
  });

  const versions = ["20", "22"].map((version) => join(RUNTIMES, `node-${version}/bin/node`));
  for (const node of [...versions, process.execPath])
    test(`${node.replace(RUNTIMES, "")}: buys and runs`, {
      skip: existsSync(node) ? false : "missing: npm ci --prefix e2e/runtimes",
    }, async () => {
      const { key } = await market.createUser();
      const stoa = `${node} ${folder.path}/node_modules/.bin/stoa`;
      const { code, stdout, stderr } = await shell(
        `${stoa} --version && ${stoa} buy "haiku about rain" --yes --json && ${stoa} run "haiku about rain" --key sandbox --var topic=rain`,
        { STOA_BASE_URL: `${market.origin}/v1`, STOA_API_KEY: key, XDG_CONFIG_HOME: folder.path },
      );
      assert.equal(code, 0, stderr);
      assert.match(stdout, /^\d+\.\d+\.\d+\n\{\n.*"status": "completed".*\}\n\[sandbox\]/s);
    });
});
