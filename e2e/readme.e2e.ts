import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { inFullRun, isFullSize } from "@stoa/service/test/full-size.ts";
import { GOOD_KEY, startProviderServer } from "@stoa/service/test/provider-server.ts";
import { installSdk } from "./packages.ts";
import {
  copyDemoData,
  mustListProducts,
  npmStart,
  type Started,
  shell,
  stop,
  temporaryFolder,
} from "./service-process.ts";

const readme = await readFile(new URL("../README.md", import.meta.url), "utf8");
const blocks = [...readme.matchAll(/```sh\n(.*?)```/gs)].map((block) => block[1]!.trim());
const [install, testing, settings, buying, commandLine, ownKey, operating, ...others] = blocks as [
  ...[string, string, string, string, string, string, string],
  ...string[],
];

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let service: Started;
let provider: Awaited<ReturnType<typeof startProviderServer>>;

before(async () => {
  folder = await temporaryFolder();
  provider = await startProviderServer();
  // In the full run, other files need the demo too, and its first start is tested when it is loaded.
  if (isFullSize) await copyDemoData(folder.path);
  service = await npmStart(folder.path);
});
after(async () => {
  await stop(service);
  await provider.close();
  await folder.remove();
});

/** The README's settings, with the values that this start printed. */
function settingsHere(): string {
  assert.match(settings, /http:\/\/127\.0\.0\.1:4000/);
  assert.match(settings, /stoa_test_…/);
  return settings.replace("http://127.0.0.1:4000", service.origin).replace("stoa_test_…", service.key);
}

const inFolder = () => ({ STOA_DATA_DIR: folder.path });
const lastJson = (stdout: string) =>
  JSON.parse(
    stdout
      .trim()
      .split(/\n|(?<=\})(?=\{)/)
      .at(-1)!,
  );

test("README: every shell block has a test", () => {
  assert.deepEqual(others, []);
  assert.equal(install, "npm ci && npm start");
  assert.match(testing, /^npm test\b/);
});

test("npm start: the printed line lists real products", async () => {
  await mustListProducts(service);
});

test("README: its lines buy a prompt and run it in the sandbox", async () => {
  const { stdout, stderr, code } = await shell(`${settingsHere()}\n${buying}`, {});
  assert.equal(code, 0, stderr);
  const { success, data } = lastJson(stdout);
  assert.equal(success, true, stdout);
  assert.match(data.output, /^\[sandbox\]/);
});

test("README: two lines of the command line buy a prompt and run it", async () => {
  const { stdout, stderr, code } = await shell(`${settingsHere()}\n${commandLine}`, inFolder());
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^\[sandbox\]/m);
});

test("README: five lines of the SDK buy a prompt and run it", inFullRun, async () => {
  const [, program = ""] = /```js\n(.*?)```/s.exec(readme)!;
  const project = await temporaryFolder();
  await installSdk(project.path);
  await writeFile(join(project.path, "buy.mjs"), program);
  const { stdout, stderr, code } = await shell(`cd ${project.path} && node buy.mjs`, {
    STOA_BASE_URL: `${service.origin}/v1`,
    STOA_API_KEY: service.key,
  });
  await project.remove();
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^\[sandbox\]/);
});

test("README: its lines run the prompt with a stored provider key", inFullRun, async () => {
  const ollama = "http://127.0.0.1:11434/v1";
  assert.ok(ownKey.includes(ollama));
  const lines = `${settingsHere()}\n${buying.split("\n")[0]}\n${ownKey.replace(ollama, provider.url).replace('"key":"ollama"', `"key":"${GOOD_KEY}"`)}`;
  const { stdout, stderr, code } = await shell(lines, {});
  assert.equal(code, 0, stderr);
  const { success, data } = lastJson(stdout);
  assert.equal(success, true, stdout);
  assert.equal(data.metadata.provider, "ollama");
  assert.ok(data.output.length > 0);
});

test("README: its operator commands work while the service runs", inFullRun, async () => {
  const lines = operating.split("\n");
  for (const line of lines.filter((command) => !command.includes(" demo "))) {
    const { code, stdout, stderr } = await shell(line, inFolder());
    assert.equal(code, 0, `${line}\n${stdout}${stderr}`);
  }
  assert.equal(lines.filter((command) => command.includes(" demo ")).length, 2);
});

test("the service and its PostgreSQL are killed: all data is there after a restart", inFullRun, async () => {
  const bought = await purchases();
  assert.ok(bought.length > 0);
  process.kill(service.postgresPid, "SIGKILL");
  process.kill(service.servicePid, "SIGKILL");
  await service.ended;
  service = await npmStart(folder.path);
  assert.deepEqual(
    (await purchases()).map((order) => order.orderId),
    bought.map((order) => order.orderId),
  );
});

test("API key printed by npm start: works after a restart, which prints it again", inFullRun, async () => {
  const old = service.key;
  assert.deepEqual(await stop(service).then(({ code }) => code), 0);
  service = await npmStart(folder.path);
  assert.equal(service.key, old);
  const reply = await fetch(`${service.origin}/v1/products`, { headers: { authorization: `Bearer ${old}` } });
  assert.equal(reply.status, 200);
});

test(
  "first-admin link: makes the signed-in account an administrator, and the next start prints none",
  inFullRun,
  async () => {
    const linkIn = (stdout: string) => /^http\S+\/auth\/first-admin#token=([\w-]+)$/m.exec(stdout);
    const token = linkIn(service.stdout)![1];
    const made = await shell(
      "npx stoa-server session create --user newcomer@stoa.example --json",
      inFolder(),
    );
    const { sessionToken } = JSON.parse(made.stdout);
    const reply = await fetch(`${service.origin}/api/auth/first-admin`, {
      method: "POST",
      headers: { authorization: `Bearer ${sessionToken}`, "content-type": "application/json" },
      body: JSON.stringify({ token }),
    });
    assert.equal(reply.status, 200, await reply.text());
    await stop(service);
    service = await npmStart(folder.path);
    assert.equal(linkIn(service.stdout), null);
  },
);

test("demo remove and demo load: the demo goes and comes back", inFullRun, async () => {
  const [remove, load] = operating.split("\n").filter((command) => command.includes(" demo "));
  assert.equal((await shell(remove!, inFolder())).code, 0);
  assert.equal(await totalProducts(), 0);
  const loaded = await shell(`${load} --json`, inFolder());
  assert.equal(loaded.code, 0, loaded.stderr);
  const { products, purchases: sales, reviews } = JSON.parse(loaded.stdout);
  assert.equal(await totalProducts(), products);
  assert.ok(products >= 250 && sales > 500 && reviews > 100, loaded.stdout);
});

async function api(path: string) {
  const reply = await fetch(`${service.origin}/v1${path}`, {
    headers: { authorization: `Bearer ${service.key}` },
  });
  return reply.json() as Promise<{ data: { orderId: string }[]; meta: { total: number } }>;
}

const purchases = async () => (await api("/purchases")).data;
const totalProducts = async () => (await api("/products")).meta.total;
