import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { createDraft, createProduct, haiku } from "@stoa/service/test/factories.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { picture } from "@stoa/service/test/uploads.ts";
import { startFaultProxy } from "../../sdk/test/fault-proxy.ts";
import { type CommandLine, openCommandLine } from "./stoa.ts";

let market: Market;
let seller: Client;
let stoa: CommandLine;
before(async () => {
  market = await openMarket();
  seller = await market.createUser();
  stoa = await openCommandLine({ origin: market.origin, key: seller.key });
});
after(async () => {
  await stoa.remove();
  await market.close();
});

/** Runs a command that succeeds, and returns its JSON. */
// biome-ignore lint/suspicious/noExplicitAny: a test says what it expects by asserting it
async function ok(...args: string[]): Promise<any> {
  const { code, stdout, stderr } = await stoa.run(["products", ...args, "--json"]);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

async function fails(code: number, stderr: RegExp, ...args: string[]): Promise<void> {
  const ended = await stoa.run(["products", ...args]);
  assert.equal(ended.code, code, ended.stderr);
  assert.match(ended.stderr, stderr);
  assert.match(ended.stderr, /\nfix: /);
}

const write = async (name: string, content: string | Uint8Array): Promise<string> => {
  const path = join(stoa.folder, name);
  await writeFile(path, content);
  return path;
};

suite("stoa products list, get, versions and history", () => {
  test("filters, own products, fields and limits", async () => {
    const other = await market.createUser();
    const [cheap, dear] = [
      await createProduct(other, { price: 1 }),
      await createProduct(other, { price: 90, title: "Dear" }),
    ];
    const draft = await createDraft(seller);
    const ids = (rows: { id: string }[]) => rows.map(({ id }) => id);
    assert.deepEqual(ids(await ok("list", "--max-price", "2", "--category", "writing", "--type", "prompt")), [
      cheap,
    ]);
    assert.deepEqual(ids(await ok("list", "--search", "dear")), [dear]);
    assert.deepEqual(
      await ok("list", "--sort", "price", "--order", "asc", "--limit", "1", "--fields", "id"),
      [{ id: cheap }],
    );
    assert.deepEqual(ids(await ok("list", "--mine", "--status", "draft")), [draft]);
    const { stdout } = await stoa.run([
      "products",
      "list",
      "--sort",
      "price",
      "--order",
      "desc",
      "--limit",
      "1",
    ]);
    assert.equal(stdout, `${dear}\tDear\tprompt\tpublished\tUSD 90.00\t0\t\tSomebody\n`);
    const prices = await stoa.run(["products", "list", "--search", "dear", "--fields", "id,price"]);
    assert.equal(prices.stdout, `${dear}\t90\n`);
    const get = await stoa.run(["products", "get", "dear"]);
    assert.match(get.stdout, /^id +prod_\w+\ntitle +Dear\n[\s\S]*\nvariables +topic, language\n/);
  });

  test("a product that does not exist: exit code 2; a wrong number: exit code 1", async () => {
    await fails(2, /^error: .*\n/, "get", "prod_01h455vb4pex5vsknk084sn02q");
    await fails(1, /^error: "cheap" is no number\n/, "list", "--max-price", "cheap");
    await fails(2, /sort/, "list", "--sort", "beauty");
  });
});

suite("stoa products create, update, publish, unpublish and delete", () => {
  test("the life of a product", async () => {
    const content = await write("prompt.txt", "Write a haiku about {{#if topic}}.");
    const rest = [
      "--description",
      "Three lines",
      "--category",
      "writing",
      "-f",
      'models={"openai":"gpt-5-mini"}',
    ];
    const fields = [
      "--title",
      "Haiku",
      "--type",
      "prompt",
      "--price",
      "4.99",
      "--tag",
      "a",
      "--tag",
      "b",
      ...rest,
    ];
    const created = await stoa.run(["products", "create", ...fields, "--content-file", content, "--json"]);
    assert.equal(created.code, 0, created.stderr);
    assert.match(created.stderr, /^warning: content/);
    const { id } = JSON.parse(created.stdout);
    await fails(2, /^error: compatibility: needs at least one provider\n/, "publish", id);
    const etag = (await seller.get(`/v1/products/${id}`)).headers.get("etag")!;
    const updated = await ok(
      "update",
      id,
      "--compatibility",
      "openai",
      "--content",
      "On {{topic}}",
      "--if-match",
      etag,
    );
    assert.deepEqual([updated.tags, updated.models], [["a", "b"], { openai: "gpt-5-mini" }]);
    await fails(2, /^error: /, "update", id, "--price", "5", "--if-match", etag);
    await fails(1, /^error: Nothing to change was given\n/, "update", id);
    assert.equal((await ok("publish", id)).status, "published");
    const next = await ok("update", id, "--content", "About {{topic}}", "--changelog", "Shorter");
    assert.equal(next.version, "1.1.0");
    const versions = await ok("versions", id);
    assert.deepEqual(
      versions.map(({ version }: { version: string }) => version),
      ["1.1.0", "1.0.0"],
    );
    assert.deepEqual(await ok("versions", id, "1.0.0", "--fields", "content"), { content: "On {{topic}}" });
    assert.equal((await ok("unpublish", id)).status, "unpublished");
    assert.equal((await ok("history", id, "--limit", "1"))[0].action, "product.unpublished");
    await fails(1, /needs an answer, and there is no terminal/, "delete", id);
    assert.equal((await ok("delete", id, "--yes")).status, "deleted");
  });

  test("withdraw: a draft cannot be taken back from the moderators", async () => {
    await fails(2, /^error: /, "withdraw", await createDraft(seller));
  });

  test("a file for the fields, which options change", async () => {
    await write("product.json", JSON.stringify(haiku));
    const { id } = await ok("create", "--from", "product.json", "--title", "Another");
    assert.equal((await ok("get", id, "--fields", "title")).title, "Another");
    await fails(1, /exclude each other/, "create", "--content", "x", "--content-file", "y");
    await fails(1, /Cannot read nothing.txt/, "create", "--content-file", "nothing.txt");
  });
});

suite("stoa products files and images", () => {
  test("added, listed and removed", async () => {
    const id = await createDraft(seller);
    await write("guide.md", "# Guide\n");
    await write("cover.png", await picture());
    const file = await ok("files", "add", id, "guide.md");
    assert.equal(file.name, "guide.md");
    const image = await ok("images", "add", id, "cover.png", "--alt", "Rain");
    assert.deepEqual(
      (await ok("files", "list", id)).map(({ id: each }: { id: string }) => each),
      [file.id],
    );
    assert.equal((await ok("images", "list", id))[0].alt, "Rain");
    await ok("files", "remove", id, file.id);
    await ok("images", "remove", id, image.id);
    const product = await ok("get", id);
    assert.deepEqual([product.files, product.gallery], [[], []]);
    await fails(1, /^error: Cannot read no.md \(ENOENT\)\n/, "files", "add", id, "no.md");
    await write("page.html", "<script>");
    await fails(2, /^error: /, "files", "add", id, "page.html");
  });
});

suite("stoa products import and export", () => {
  test("an export, imported by another seller, twice: the products once", async () => {
    const other = await market.createUser();
    for (const title of ["A", "B"]) await createDraft(other, { title });
    const env = { STOA_API_KEY: other.key };
    for (const [format, name] of [
      ["jsonl", "products.jsonl"],
      ["markdown", "products.zip"],
    ] as const) {
      const exported = await stoa.run(["products", "export", "--format", format, "-o", name], { env });
      assert.equal(exported.code, 0, exported.stderr);
      const buyer = await market.createUser();
      for (const args of [["--dry-run"], ["--publish"], ["--publish"]]) {
        const imported = await stoa.run(["products", "import", name, ...args, "--json"], {
          env: { STOA_API_KEY: buyer.key },
        });
        assert.equal(imported.code, 0, imported.stderr);
        assert.equal(JSON.parse(imported.stdout).created, 2);
      }
      assert.equal((await buyer.get("/v1/products?author=me")).body.meta.total, 2);
    }
    const { stdout } = await stoa.run(["products", "export"], { env });
    assert.equal(stdout, await readFile(join(stoa.folder, "products.jsonl"), "utf8"));
  });

  test("mistakes in a file: each with its line, and nothing is written", async () => {
    await write(
      "bad.jsonl",
      `${JSON.stringify(haiku)}\n{"title":\n${JSON.stringify({ ...haiku, price: 0 })}`,
    );
    await fails(
      2,
      /^error: bad.jsonl was not imported\n {2}bad.jsonl:2: product .*JSON\n {2}bad.jsonl:3: price /,
      "import",
      "bad.jsonl",
    );
    await fails(1, /products.csv is no file to import\nfix: .*\.zip/, "import", "products.csv");
    await fails(1, /Cannot read none.zip/, "import", "none.zip");
  });

  test("an export that is cut off: exit code 2, and no file", async () => {
    const proxy = await startFaultProxy(market.origin);
    try {
      const content = "x".repeat(100_000);
      for (let n = 0; n < 3; n++) await createDraft(seller, { content });
      proxy.decide = () => ({ cutAfterBytes: 150_000 });
      const env = { STOA_BASE_URL: `${proxy.origin}/v1` };
      const { code, stderr } = await stoa.run(["products", "export", "-o", "cut.jsonl"], { env });
      assert.equal(code, 2, stderr);
      assert.match(stderr, /^error: The export was cut off: .*\nfix: /);
      assert.deepEqual(
        (await readdir(stoa.folder)).filter((name) => name.startsWith("cut")),
        [],
      );
      const folder = await stoa.run(["products", "export", "-o", "none/products.jsonl"]);
      assert.equal(folder.code, 1, folder.stderr);
      assert.match(folder.stderr, /^error: Cannot write none\/products.jsonl \(ENOENT\)\nfix: /);
    } finally {
      await proxy.close();
    }
  });
});
