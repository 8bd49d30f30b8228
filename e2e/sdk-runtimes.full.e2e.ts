import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { createProduct } from "@stoa/service/test/factories.ts";
import { type Market, openMarket } from "@stoa/service/test/market.ts";
import { until } from "@stoa/service/test/until.ts";
import { startWebhookReceiver } from "@stoa/service/test/webhook-receiver.ts";
import { openBrowser } from "./browser.ts";
import { SHARED } from "./once.ts";
import { installSdk } from "./packages.ts";
import { environmentWith, shell, temporaryFolder } from "./service-process.ts";

const FOLDER = new URL("./runtimes/", import.meta.url).pathname;
const ESBUILD = new URL("../node_modules/.bin/esbuild", import.meta.url).pathname;
const PROGRAMS = ["program.mjs", "import.mjs", "require.cjs", "worker.mjs", "workerd.capnp"];

/** A package of e2e/runtimes, which a user's `npm ci` does not install. */
const packaged = (name: string, file: string) => {
  const path = join(FOLDER, "node_modules", name, file);
  return { path, skip: existsSync(path) ? false : `${name} is missing: npm ci --prefix e2e/runtimes` };
};
const node24 = { path: process.execPath, skip: false };
const node20 = packaged("node-20", "bin/node");
const node22 = packaged("node-22", "bin/node");
const bun = packaged("@oven/bun-linux-x64", "bin/bun");
const deno = packaged("@deno/linux-x64-glibc", "deno");
const workerd = packaged("@cloudflare/workerd-linux-64", "bin/workerd");
const publint = packaged("publint", "src/cli.js");
const attw = packaged("@arethetypeswrong/cli", "dist/index.js");

let market: Market;
let productId: string;
let delivery: { body: string; headers: object; secret: string };
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
before(async () => {
  market = await openMarket({ config: { roles: { api: true, worker: true } }, now: () => new Date() });
  productId = await createProduct(await market.createUser(), { title: "Haiku" });
  await createProduct(await market.createUser(), { title: "Sonnet" });
  delivery = await receiveDelivery();
  folder = await temporaryFolder();
  await installSdk(folder.path);
  for (const file of PROGRAMS) await cp(join(FOLDER, file), join(folder.path, file));
  await mustRun(
    `${ESBUILD} worker.mjs --bundle --minify --format=esm --outfile=worker.bundle.mjs --log-level=warning`,
  );
});
after(async () => {
  await market.close();
  await folder.remove();
});

/** A delivery of the service, as its receiver gets it. */
async function receiveDelivery() {
  const receiver = await startWebhookReceiver();
  const owner = await market.createUser();
  const { id, secret } = (await owner.post("/v1/webhooks", { url: receiver.url })).body.data;
  await owner.post(`/v1/webhooks/${id}/test`);
  const { body, headers } = await until("the delivery", async () => receiver.received[0]);
  await receiver.close();
  return { body, headers, secret };
}

async function mustRun(line: string, settings: Record<string, string> = {}): Promise<string> {
  const { code, stdout, stderr } = await shell(`cd ${folder.path} && ${line}`, settings);
  assert.equal(code, 0, `${stderr}\n${stdout}`);
  return stdout;
}

/** What the program needs: each time another buyer, who has bought nothing. */
const createInput = async () => ({
  baseUrl: `${market.origin}/v1`,
  apiKey: (await market.createUser()).key,
  productId,
  delivery,
});

function assertResult({ output, ...result }: { output: string }): void {
  assert.match(output, /^\[sandbox\]/);
  assert.deepEqual(result, {
    titles: ["Haiku", "Sonnet"],
    hasOneOrder: true,
    events: ["execution.started", "output.delta", "execution.completed"],
    isStreamedOutput: true,
    publicData: { addresses: [] },
    error: [true, "NotFoundError", "PRODUCT_NOT_FOUND"],
    event: "test",
    forged: ["WebhookError", "signature"],
  });
}

async function runCommand(command: string, settings: Record<string, string> = {}) {
  await writeFile(join(folder.path, "input.json"), JSON.stringify(await createInput()));
  assertResult(JSON.parse(await mustRun(command, settings)));
}

/** The port that workerd reports on its standard output. */
async function startWorkerd(): Promise<{ origin: string; stop(): Promise<void> }> {
  const child = spawn(workerd.path, ["serve", "--control-fd=1", join(folder.path, "workerd.capnp")], {
    env: environmentWith({}),
    stdio: ["ignore", "pipe", "inherit"],
  });
  const closed = new Promise((resolve) => child.once("close", resolve));
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    output += text;
  });
  const port = await until("workerd listens", async () => /"port":(\d+)/.exec(output)?.[1]);
  return {
    origin: `http://127.0.0.1:${port}`,
    async stop() {
      child.kill("SIGTERM");
      await closed;
    },
  };
}

suite("the packed SDK: a list, a purchase, a streamed run, an error and a delivery", () => {
  for (const [version, { path, skip }] of Object.entries({ 20: node20, 22: node22, 24: node24 })) {
    test(`in Node ${version}`, { skip }, () => runCommand(`${path} import.mjs`));
    test(`in Node ${version} by require()`, { skip }, () => runCommand(`${path} require.cjs`));
  }

  test("in Bun", { skip: bun.skip }, () => runCommand(`${bun.path} --no-install import.mjs`));

  test("in Deno, with permission for the network and this folder alone", { skip: deno.skip }, () =>
    runCommand(`${deno.path} run --quiet --cached-only --allow-net=127.0.0.1 --allow-read=. import.mjs`, {
      DENO_DIR: join(folder.path, "deno"),
      DENO_NO_UPDATE_CHECK: "1",
    }),
  );

  test("in workerd", { skip: workerd.skip }, async () => {
    const { origin, stop } = await startWorkerd();
    try {
      const response = await fetch(origin, { method: "POST", body: JSON.stringify(await createInput()) });
      const text = await response.text();
      assert.equal(response.status, 200, text);
      assertResult(JSON.parse(text));
    } finally {
      await stop();
    }
  });

  test("in Chromium", async () => {
    const browser = await openBrowser();
    try {
      const page = await browser.newPage();
      const script = await readFile(join(folder.path, "worker.bundle.mjs"), "utf8");
      await page.route("**/sdk-test/*", (route) =>
        route.request().url().endsWith(".js")
          ? route.fulfill({ contentType: "text/javascript", body: script })
          : route.fulfill({ contentType: "text/html", body: "<!doctype html><title>SDK</title>" }),
      );
      await page.goto(`${market.origin}/sdk-test/page`);
      const input = JSON.stringify(await createInput());
      const result = await page.evaluate(
        `import("/sdk-test/sdk.js").then(({ runInPage }) => runInPage(${input}))`,
      );
      assertResult(result as { output: string });
    } finally {
      await browser.close();
    }
  });
});

test("publint: no message about the package", { skip: publint.skip }, async () => {
  await mustRun(`${process.execPath} ${publint.path} run --strict ${SHARED}/stoa-sdk-*.tgz`);
});

test("are the types wrong: every entry has its types for ES modules and bundlers", {
  skip: attw.skip,
}, async () => {
  await mustRun(`${process.execPath} ${attw.path} --profile esm-only ${SHARED}/stoa-sdk-*.tgz`);
});
