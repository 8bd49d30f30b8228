import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { npmStart, type Started, shell, stop, temporaryFolder } from "./service-process.ts";

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let service: Started;
before(async () => {
  folder = await temporaryFolder();
  service = await npmStart(folder.path);
});
after(async () => {
  await stop(service);
  await folder.remove();
});

/** The shell blocks of a guide, in their order, under the headings that they stand below. */
async function blocksOf(guide: string): Promise<{ heading: string; lines: string }[]> {
  const text = await readFile(new URL(`../docs/guides/${guide}`, import.meta.url), "utf8");
  return text.split(/^#+ /m).flatMap((section) => {
    const heading = section.split("\n")[0]!;
    return [...section.matchAll(/```sh\n(.*?)```/gs)].map(([, lines]) => ({ heading, lines: lines!.trim() }));
  });
}

const MARK = "----- the next block -----";

/** One shell runs them all, as somebody would who copies them one by one; answers what each printed. */
async function run(blocks: { lines: string }[]): Promise<string[]> {
  const { code, stdout, stderr } = await shell(
    blocks.map(({ lines }) => lines).join(`\necho; echo "${MARK}"\n`),
    {},
  );
  assert.equal(code, 0, `${stdout}\n${stderr}`);
  return stdout.split(`\n${MARK}\n`).map((said) => said.trim());
}

test("the lines of the guide to authentication do what it says", async () => {
  const blocks = await blocksOf("authentication.md");
  const example = "http://127.0.0.1:4000";
  assert.ok(blocks[0]!.lines.includes(example));
  blocks[0]!.lines = blocks[0]!.lines.replace(example, service.origin);
  const said = await run(blocks);
  const what = blocks.map(({ heading }, at) => ({ heading, said: said[at]! }));
  const after = (heading: string) =>
    what.filter((block) => block.heading === heading).map((block) => block.said);

  const [asked, signedIn] = after("Sign in by mail").map((text) => JSON.parse(text));
  assert.equal(asked.success, true);
  assert.equal(signedIn.data.email, "grace@example.net");
  const [products] = after("Make an API key").map((text) => JSON.parse(text));
  assert.equal(products.data.length, 1);
  const [purchases] = after("Let another program act for you").map((text) => JSON.parse(text));
  assert.deepEqual([purchases.success, purchases.data], [true, []]);
  const [limits] = after("Rate limits");
  for (const name of ["limit", "remaining", "reset"])
    assert.match(limits!, new RegExp(`^x-ratelimit-${name}: \\d+`, "im"));
  assert.deepEqual(
    [...new Set(what.map(({ heading }) => heading))],
    ["Who may enter", "Sign in by mail", "Make an API key", "Let another program act for you", "Rate limits"],
    "a block that nobody looks at",
  );
});

test("the lines of the guide to files do what it says", async () => {
  const blocks = await blocksOf("files.md");
  assert.match(blocks[0]!.lines, /http:\/\/127\.0\.0\.1:4000.*stoa_test_…/);
  blocks[0]!.lines = blocks[0]!.lines
    .replace("http://127.0.0.1:4000", service.origin)
    .replace("stoa_test_…", service.key);
  const [, added, downloaded, shown, taken, ...others] = await run(blocks);
  assert.equal(JSON.parse(added!).data.name, "guide.md");
  assert.equal(downloaded, "# How to use it\n\nName a topic.");
  assert.equal(JSON.parse(shown!).data.alt, "A drop of rain");
  assert.equal(taken!.match(/"success":true/g)?.length, 2);
  assert.deepEqual(others, [], "a block that nobody looks at");
});
