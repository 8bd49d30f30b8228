import assert from "node:assert/strict";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { inFullRun } from "@stoa/service/test/full-size.ts";
import {
  copyDemoData,
  npmStart,
  STOA,
  type Started,
  shell,
  stop,
  temporaryFolder,
} from "./service-process.ts";

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let service: Started;
before(async () => {
  folder = await temporaryFolder();
  await copyDemoData(at("data"));
  service = await npmStart(at("data"));
  await stoa("user create --email hopper@example.net --name Hopper");
});
after(async () => {
  await stop(service);
  await folder.remove();
});

const at = (path: string) => join(folder.path, path);
const stoa = (line: string) => shell(`${STOA} ${line}`, { STOA_DATA_DIR: at("data") });
const products = (line: string) => stoa(`products ${line} --seller hopper@example.net`);
const linesOf = (stderr: string) => stderr.split("\n").filter((line) => line !== "");

const line = (fields: object) =>
  JSON.stringify({ title: "Haiku", type: "PROMPT", price: 4.99, content: "On {{topic}}", ...fields });

test("products import and export of a file: the export on stdout equals the import", async () => {
  await writeFile(at("in.jsonl"), [line({ id: "a" }), line({ id: "b", title: "日本の俳句\n" })].join("\n"));
  const dry = await products(`import ${at("in.jsonl")} --dry-run --json`);
  assert.deepEqual([dry.code, JSON.parse(dry.stdout).created], [0, 2], dry.stderr);
  const done = await products(`import ${at("in.jsonl")} --json`);
  const { created, products: made } = JSON.parse(done.stdout);
  assert.deepEqual([done.code, created], [0, 2], done.stderr);
  const { stdout } = await products("export");
  const out = stdout
    .trim()
    .split("\n")
    .map((text) => JSON.parse(text));
  assert.deepEqual(
    out.map(({ id, title }) => [id, title]),
    [
      [made[0].id, "Haiku"],
      [made[1].id, "日本の俳句"],
    ],
  );
});

test("products import with problems: one line each on stderr, exit code 1, nothing changes", async () => {
  await writeFile(at("bad.jsonl"), [line({ id: "new" }), line({ price: 0 }), "{"].join("\n"));
  const { code, stdout, stderr } = await products(`import ${at("bad.jsonl")}`);
  assert.equal(code, 1);
  assert.equal(stdout, "");
  assert.deepEqual(linesOf(stderr).toSorted(), [
    "line 2: price: price must be positive",
    "line 3: product: is not valid JSON",
  ]);
  const { stdout: after } = await products("export");
  assert.equal(after.trim().split("\n").length, 2);
});

test(
  "products export of a folder: needs a new folder, and importing it changes nothing",
  inFullRun,
  async () => {
    const out = await products(`export --format markdown --output ${at("out")}`);
    assert.equal(out.code, 0, out.stderr);
    const names = await readdir(at("out"));
    assert.equal(names.length, 2);
    assert.match(await readFile(join(at("out"), names[0]!), "utf8"), /^---\nid: prod_/);
    const twice = await products(`export --format markdown --output ${at("out")}`);
    assert.equal(twice.code, 1);
    assert.match(twice.stderr, /is not empty: name a new folder/);
    await mkdir(at("out/.git"));
    await writeFile(at("out/.git/x.md"), "hidden");
    await writeFile(at("out/README.md"), "# Mine");
    const back = await products(`import ${at("out")} --publish`);
    assert.match(back.stdout, /^created: 0\nupdated: 0\nunchanged: 2\npublished: 0$/m);
    assert.equal(back.code, 0, "a draft's status says that it stays one");
  },
);

test(
  "products import --publish: names incomplete products; an unreadable file is refused in one sentence",
  inFullRun,
  async () => {
    await writeFile(at("lacking.jsonl"), line({ id: "a", status: "published" }));
    const lacking = await products(`import ${at("lacking.jsonl")} --publish`);
    assert.equal(lacking.code, 1);
    assert.match(lacking.stdout, /^unchanged: 1$/m);
    assert.deepEqual(
      linesOf(lacking.stderr).map((text) => text.split(":").slice(0, 3).join(":")),
      ["description", "category", "compatibility"].map((field) => `line 1: not published: ${field}`),
    );
    await writeFile(at("x.csv"), "a,b");
    const csv = await products(`import ${at("x.csv")}`);
    assert.equal(csv.code, 1);
    assert.match(csv.stderr, /x\.csv is no \.jsonl, \.md or \.zip file and no folder\./);
    const nobody = await stoa("products export --seller nobody@example.net");
    assert.equal(nobody.code, 1);
    assert.match(nobody.stderr, /No account has the id or address nobody@example\.net/);
  },
);

test("products export to a file: the file appears when it is complete", inFullRun, async () => {
  const { code, stdout } = await products(`export --output ${at("out.jsonl")} --json`);
  assert.deepEqual([code, JSON.parse(stdout)], [0, { output: at("out.jsonl") }]);
  assert.equal((await readFile(at("out.jsonl"), "utf8")).trim().split("\n").length, 2);
  assert.ok(!(await readdir(folder.path)).includes("out.jsonl.part"));
});
