import assert from "node:assert/strict";
import { cp, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { createDraft, haiku, workflow } from "@stoa/service/test/factories.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { until } from "@stoa/service/test/until.ts";
import { picture, sendImage, uploadFile } from "@stoa/service/test/uploads.ts";
import { type FaultProxy, startFaultProxy } from "../../sdk/test/fault-proxy.ts";
import { type CommandLine, openCommandLine } from "./stoa.ts";

/** A command that ended early makes no request. */
const LIMIT_MS = 30_000;

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

interface Seller {
  stoa: CommandLine;
  seller: Client;
  /** Runs a command that succeeds, and returns its JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects by asserting it
  ok(...args: string[]): Promise<any>;
  read(path: string): Promise<string>;
  write(path: string, content: string | Uint8Array): Promise<void>;
  edit(path: string, from: string | RegExp, to: string): Promise<void>;
  state(folder?: string): Promise<Record<string, never> & { id: string }>;
}

async function withSeller(work: (seller: Seller) => Promise<void>, origin = market.origin): Promise<void> {
  const seller = await market.createUser();
  const stoa = await openCommandLine({ origin, key: seller.key });
  const path = (name: string) => join(stoa.folder, name);
  const read = (name: string) => readFile(path(name), "utf8");
  const write = async (name: string, content: string | Uint8Array) => {
    await mkdir(join(path(name), ".."), { recursive: true });
    await writeFile(path(name), content);
  };
  try {
    await work({
      ...{ stoa, seller, read, write },
      async ok(...args) {
        const { code, stdout, stderr } = await stoa.run([...args, "--json"]);
        assert.equal(code, 0, stderr);
        return stdout === "" ? undefined : JSON.parse(stdout);
      },
      edit: async (name, from, to) => write(name, (await read(name)).replace(from, to)),
      state: async (folder = "p") => JSON.parse(await read(`${folder}/.stoa/product.json`)),
    });
  } finally {
    await stoa.remove();
  }
}

const productOf = async ({ seller }: Seller, id: string) =>
  (await seller.get(`/v1/products/${id}`)).body.data;

/** All files of a folder but the state, by path. */
async function filesIn({ stoa }: Seller, folder: string): Promise<Record<string, string>> {
  const names = await readdir(join(stoa.folder, folder), { recursive: true, withFileTypes: true });
  const paths = names.filter((each) => each.isFile()).map((each) => join(each.parentPath, each.name));
  const own = paths.filter((path) => !path.includes("/.stoa/")).toSorted();
  const base = join(stoa.folder, folder);
  return Object.fromEntries(
    await Promise.all(own.map(async (path) => [path.slice(base.length + 1), await readFile(path, "latin1")])),
  );
}

suite("stoa init", () => {
  test("a prompt and a workflow: pushed and published at once, and a second push changes nothing", () =>
    withSeller(async (it) => {
      for (const [folder, args, type] of [
        ["p", [], "PROMPT"],
        ["w", ["--workflow"], "WORKFLOW"],
      ] as const) {
        await it.ok("init", folder, ...args);
        const product = await it.ok("products", "push", folder, "--publish");
        assert.deepEqual([product.type, product.status], [type, "published"]);
        const before = await filesIn(it, folder);
        const { stderr, stdout } = await it.stoa.run(["products", "push", folder]);
        assert.match(stderr, /^Nothing has changed[^\n]*\n[^\n]+, version 1\.0\.0: published\n$/);
        assert.equal(stdout, `${product.id}\n`);
        await it.ok("products", "pull", folder);
        assert.deepEqual(await filesIn(it, folder), before);
        assert.equal((await productOf(it, product.id)).version, "1.0.0");
      }
    }));

  test("a folder with files: refused, and nothing is written", () =>
    withSeller(async (it) => {
      await it.write("full/notes.txt", "mine");
      const { code, stderr } = await it.stoa.run(["init", "full"]);
      assert.equal(code, 1);
      assert.match(stderr, /^error: full is not empty\nfix: /);
      assert.deepEqual(Object.keys(await filesIn(it, "full")), ["notes.txt"]);
    }));
});

suite("stoa products pull, diff and push", () => {
  test("a product with files and images, pulled, changed and pushed: the service has what the folder has", () =>
    withSeller(async (it) => {
      const { seller, stoa } = it;
      const id = await createDraft(seller);
      await uploadFile(seller, id, { name: "guide.md", bytes: "# Guide\n" });
      await uploadFile(seller, id, { name: "old.txt", bytes: "old" });
      await sendImage(seller, id, { bytes: await picture(), fields: { alt: "Red" } });
      await it.ok("products", "pull", id, "p");
      assert.deepEqual(Object.keys(await filesIn(it, "p")), [
        "files/guide.md",
        "files/old.txt",
        "images/01.webp",
        "prompt.md",
      ]);
      assert.match(await it.read("p/prompt.md"), /images:\n {2}01\.webp: Red\n---\n\nWrite a haiku about/);
      assert.deepEqual(await it.ok("products", "diff", "p", "--exit-code"), { id, local: [], remote: [] });

      await it.edit("p/prompt.md", "price: 4.99", "price: 6.5");
      await it.edit("p/prompt.md", "Write a haiku", "Write one haiku");
      await it.write("p/files/guide.md", "# A better guide\n");
      await it.write("p/files/guide.md~", "a backup");
      await it.write("p/files/.hidden", "hidden");
      await rm(join(stoa.folder, "p/files/old.txt"));
      await it.write("p/images/02.png", await picture({ red: 10 }));
      const diff = await stoa.run(["products", "diff", "p", "--exit-code"]);
      assert.equal(diff.code, 3, diff.stderr);
      assert.match(diff.stdout, /^--- service\/prompt.md\n\+\+\+ prompt.md\n@@ /);
      assert.match(diff.stdout, /\n-price: 4.99\n\+price: 6.5\n/);
      assert.match(diff.stdout, /\n-Write a haiku.*\n\+Write one haiku.*\n/);
      assert.match(diff.stdout, /\n~ files\/guide.md\n- files\/old.txt\n\+ images\/02.png\n$/);

      await it.ok("products", "push", "p");
      const product = await productOf(it, id);
      assert.deepEqual([product.price, product.content.slice(0, 15)], [6.5, "Write one haiku"]);
      assert.deepEqual(
        product.files.map(({ name }: { name: string }) => name),
        ["guide.md"],
      );
      assert.equal(await (await fetch(product.files[0].url)).text(), "# A better guide\n");
      assert.deepEqual(
        product.gallery.map(({ alt }: { alt: string }) => alt),
        ["Red", ""],
      );
      await it.ok("products", "diff", "p", "--exit-code");

      const files = await filesIn(it, "p");
      await it.ok("products", "pull", "p");
      assert.deepEqual(await filesIn(it, "p"), files);
      await rm(join(stoa.folder, "p/images/01.webp"));
      await it.edit("p/prompt.md", /images:\n.*\n/, 'images:\n  02.png: " Dark "\n');
      await it.ok("products", "push", "p");
      assert.deepEqual(
        (await productOf(it, id)).gallery.map(({ alt }: { alt: string }) => alt),
        ["Dark"],
      );
      await it.ok("products", "diff", "p", "--exit-code");
    }));

  test("changes on both sides: push refuses, pull merges, --force chooses a side", () =>
    withSeller(async (it) => {
      const { seller, stoa } = it;
      const id = await createDraft(seller);
      await it.ok("products", "pull", id, "p");
      await it.edit("p/prompt.md", "price: 4.99", "price: 6.5 # more");
      await seller.patch(`/v1/products/${id}`, { title: "Theirs", lang: "en" });
      await uploadFile(seller, id, { name: "new.txt", bytes: "new" });
      const refused = await stoa.run(["products", "push", "p"]);
      assert.equal(refused.code, 2);
      assert.match(
        refused.stderr,
        /error: prod_\w+ has changed .*: title, lang, files\/new.txt\nfix: .*pull.*push --force/,
      );
      const diff = await it.ok("products", "diff", "p");
      assert.deepEqual(diff, { id, local: ["price"], remote: ["title", "lang", "files/new.txt"] });
      await it.ok("products", "pull", "p");
      assert.match(
        await it.read("p/prompt.md"),
        /title: Theirs\n[\s\S]*price: 6.5 # more\n[\s\S]*lang: en\n/,
      );
      assert.equal(await it.read("p/files/new.txt"), "new");
      assert.equal((await it.ok("products", "push", "p")).price, 6.5);

      await it.edit("p/prompt.md", "title: Theirs", "title: Ours");
      await seller.patch(`/v1/products/${id}`, { title: "Theirs again" });
      const conflict = await stoa.run(["products", "pull", "p"]);
      assert.equal(conflict.code, 2);
      assert.match(conflict.stderr, /error: Both .* have changed: title\nfix: .*--force/);
      assert.match(await it.read("p/prompt.md"), /title: Ours/);
      await cp(join(stoa.folder, "p"), join(stoa.folder, "q"), { recursive: true });
      assert.equal((await it.ok("products", "push", "p", "--force")).title, "Ours");
      await it.ok("products", "pull", "q", "--force");
      assert.equal(await it.read("q/prompt.md"), await it.read("p/prompt.md"));
    }));

  test("a change between reading and writing: 412, and nothing is overwritten", async () => {
    const proxy = await startFaultProxy(market.origin);
    await withSeller(async (it) => {
      const id = await createDraft(it.seller);
      await it.ok("products", "pull", id, "p");
      await it.edit("p/prompt.md", "price: 4.99", "price: 6.5");
      proxy.decide = (n) => {
        if (proxy.requests[n]?.method !== "PATCH") return "pass";
        return {
          status: 412,
          body: JSON.stringify({ success: false, error: { code: "PRECONDITION_FAILED", message: "x" } }),
        };
      };
      await it.seller.patch(`/v1/products/${id}`, { tags: ["theirs"] });
      const { code, stderr } = await it.stoa.run(["products", "push", "p", "--force"]);
      assert.equal(code, 2, stderr);
      assert.match(stderr, /has changed on the service since your last pull or push: tags\nfix: /);
      const patch = proxy.requests.find(({ method }) => method === "PATCH");
      assert.match(patch?.headers["if-match"] ?? "", /^"\d+-author/);
    }, proxy.origin).finally(() => proxy.close());
  });

  test("a change of the status between reading and writing: the push goes on, with a warning about the content", async () => {
    const proxy = await startFaultProxy(market.origin);
    await withSeller(async (it) => {
      const id = await createDraft(it.seller);
      await it.ok("products", "pull", id, "p");
      await it.edit("p/prompt.md", "Write a haiku", "{{#if x}}");
      const refusal = { success: false, error: { code: "PRECONDITION_FAILED", message: "x" } };
      const patches = () => proxy.requests.filter(({ method }) => method === "PATCH").length;
      proxy.decide = (n) =>
        proxy.requests[n]?.method === "PATCH" && patches() === 1
          ? { status: 412, body: JSON.stringify(refusal) }
          : "pass";
      const { code, stderr } = await it.stoa.run(["products", "push", "p"]);
      assert.equal(code, 0, stderr);
      assert.match(stderr, /\nwarning: prompt\.md:\d+: content /);
      assert.equal(patches(), 2);
    }, proxy.origin).finally(() => proxy.close());
  });

  test("files and images with names of JavaScript's own: no conflict", () =>
    withSeller(async (it) => {
      await it.ok("init", "p");
      await it.write("p/files/constructor", "text");
      const { stderr } = await it.stoa.run(["products", "push", "p"]);
      assert.match(stderr, /error: file: is text\/plain .* call it \.txt/);
      await rm(join(it.stoa.folder, "p/files"), { recursive: true });
      for (const [red, name] of ["__proto__", "constructor"].entries())
        await it.write(`p/images/${name}`, await picture({ red: 100 * red }));
      await it.edit("p/prompt.md", "price:", "images: { __proto__: Red }\nprice:");
      const { id, gallery } = await it.ok("products", "push", "p");
      assert.deepEqual(gallery.map(({ alt }: { alt: string }) => alt).toSorted(), ["", "Red"]);
      assert.deepEqual(await it.ok("products", "diff", "p"), { id, local: [], remote: [] });
      await it.ok("products", "pull", "p", "--force");
      assert.equal((await it.ok("products", "push", "p")).gallery.length, 2);
      assert.deepEqual(await it.ok("products", "diff", "p"), { id, local: [], remote: [] });
    }));

  test("a published product: one new version with its changelog; --publish after a change of the terms", () =>
    withSeller(async (it) => {
      const id = await createDraft(it.seller);
      await it.ok("products", "pull", id, "p");
      await it.ok("products", "push", "p", "--publish");
      await it.edit("p/prompt.md", "Write a haiku", "Write one haiku");
      const pushed = await it.ok("products", "push", "p", "--changelog", "One");
      assert.deepEqual([pushed.version, pushed.changelog], ["1.1.0", "One"]);
      await it.edit("p/prompt.md", "---\n\n", "version: 2.0.0\nchangelog: Two\n---\n\n{{audience}}: ");
      const major = await it.ok("products", "push", "p");
      assert.deepEqual([major.version, major.changelog], ["2.0.0", "Two"]);
      const { stderr } = await it.stoa.run(["products", "push", "p"]);
      assert.match(stderr, /^Nothing has changed/);
    }));

  test("a workflow with comments: its definition on the service is JSON, and the file stays byte for byte", () =>
    withSeller(async (it) => {
      const content = JSON.stringify(workflow);
      const id = await createDraft(it.seller, { type: "WORKFLOW", content });
      await it.ok("products", "pull", id, "p");
      await it.ok("products", "diff", "p", "--exit-code");
      await it.edit("p/workflow.yaml", "steps:", "# The work\nsteps:");
      await it.edit("p/workflow.yaml", "price: 4.99", "price: 6.5");
      await it.ok("products", "push", "p");
      const product = await productOf(it, id);
      assert.deepEqual([product.content, product.price], [content, 6.5]);
      const files = await filesIn(it, "p");
      await it.ok("products", "pull", "p");
      assert.deepEqual(await filesIn(it, "p"), files);
    }));
});

suite("what the service stores in another spelling", () => {
  test("texts without invisible characters, lower-case tags: no change, and no conflict", () =>
    withSeller(async (it) => {
      await it.ok("init", "p");
      await it.edit("p/prompt.md", "title: ", "title: ' ");
      await it.edit("p/prompt.md", "anything\n", 'anything \'\nimages: { 1.png: "Ra\\u200bin" }\nlang: en\n');
      await it.edit("p/prompt.md", "[poetry]", "[Poetry, Haiku, poetry]");
      await it.edit("p/prompt.md", "Three lines", '"Three\\u200b lines');
      await it.edit("p/prompt.md", "you name.\n", 'you name."\n');
      await it.write("p/images/1.png", await picture());
      const { id } = await it.ok("products", "push", "p");
      const product = await productOf(it, id);
      assert.deepEqual([product.tags, product.gallery[0].alt], [["poetry", "haiku"], "Rain"]);
      const files = await filesIn(it, "p");
      assert.deepEqual(await it.ok("products", "diff", "p", "--exit-code"), { id, local: [], remote: [] });
      await it.ok("products", "pull", "p");
      assert.deepEqual(await filesIn(it, "p"), files);
    }));

  test("a file's name: the error asks to rename it, and the next push goes on", () =>
    withSeller(async (it) => {
      await it.ok("init", "p");
      await it.write("p/files/a  b.md", "# A\n");
      const { code, stderr } = await it.stoa.run(["products", "push", "p"]);
      assert.equal(code, 1, stderr);
      assert.match(stderr, /error: The service stores files\/a {2}b.md as a b.md\nfix: Rename/);
      await rename(join(it.stoa.folder, "p/files/a  b.md"), join(it.stoa.folder, "p/files/a b.md"));
      const product = await it.ok("products", "push", "p");
      assert.deepEqual(
        product.files.map(({ name }: { name: string }) => name),
        ["a b.md"],
      );
    }));
});

suite("mistakes in a project", () => {
  test("what the service refuses: file and line; exit code 2, and no product", () =>
    withSeller(async (it) => {
      await it.ok("init", "w", "--workflow");
      await it.edit("w/workflow.yaml", "needs: [outline]", "needs: [outlin]");
      await it.edit("w/workflow.yaml", "price: 9.99", "price: -1");
      const { code, stderr } = await it.stoa.run(["products", "push", "w"]);
      assert.equal(code, 2, stderr);
      assert.match(stderr, /error: The service refuses workflow.yaml\n/);
      assert.match(stderr, /\n {2}workflow.yaml:5: price .*positive/);
      await it.edit("w/workflow.yaml", "price: -1", "price: 1");
      const second = await it.stoa.run(["products", "push", "w"]);
      assert.match(second.stderr, /\n {2}workflow.yaml:28: content\.steps\[1\]\.needs/);
      assert.equal((await it.seller.get("/v1/products?author=me")).body.meta.total, 0);
      await it.edit("w/workflow.yaml", "needs: [outlin]", "needs: [outline]");
      await it.ok("products", "push", "w", "--publish");
      assert.equal((await it.seller.get("/v1/products?author=me")).body.meta.total, 1);
    }));

  test("files that cannot be pushed: exit code 1 before any request", () =>
    withSeller(async (it) => {
      const fails = async (message: RegExp, folder = "p") => {
        const { code, stderr } = await it.stoa.run(["products", "push", folder], {
          env: { STOA_BASE_URL: "http://127.0.0.1:9/v1" },
        });
        assert.equal(code, 1, stderr);
        assert.match(stderr, message);
        assert.match(stderr, /\nfix: /);
      };
      await mkdir(join(it.stoa.folder, "empty"));
      await fails(/error: empty has neither prompt.md nor workflow.yaml/, "empty");
      assert.deepEqual(await readdir(join(it.stoa.folder, "empty")), []);
      await it.ok("init", "p");
      await it.edit("p/prompt.md", "category:", "categroy:");
      await fails(/error: prompt.md:4: "categroy" is no field of a product\nfix: Did you mean category\?/);
      await it.edit("p/prompt.md", "categroy:", "category:");
      await it.write("p/workflow.yaml", "");
      await fails(/has both prompt.md and workflow.yaml/);
      await rm(join(it.stoa.folder, "p/workflow.yaml"));
      await it.write("p/files/sub/a.md", "a");
      await fails(/files\/sub is a folder/);
      await rm(join(it.stoa.folder, "p/files/sub"), { recursive: true });
      await symlink("/etc/passwd", join(it.stoa.folder, "p/files/notes.txt"));
      await fails(/notes.txt is neither a file nor a folder/);
      await rm(join(it.stoa.folder, "p/files/notes.txt"));
      await it.write("p/files/a:b.md", "a");
      await fails(/a:b.md has a name that other systems do not allow/);
    }));

  test("a state that cannot be written: exit code 1, and no product", () =>
    withSeller(async (it) => {
      await it.ok("init", "p");
      await it.write("p/.stoa", "a file where the state should be");
      const { code, stderr } = await it.stoa.run(["products", "push", "p"]);
      assert.equal(code, 1, stderr);
      assert.match(stderr, /error: Cannot write p\/.stoa.*\nfix: /);
      assert.equal((await it.seller.get("/v1/products?author=me")).body.meta.total, 0);
    }));

  test("a state that names places outside of the folder: exit code 1, and nothing is touched", () =>
    withSeller(async (it) => {
      const id = await createDraft(it.seller);
      await sendImage(it.seller, id, { bytes: await picture() });
      await it.ok("products", "pull", id, "p");
      await it.write("outside/keys", "mine");
      const own = await it.read("p/.stoa/product.json");
      const { images, files, ...rest } = JSON.parse(own);
      const hostile = [
        { ...rest, images: { "../../outside/keys": images["01.webp"] }, files },
        { ...rest, images, files: { "../../outside/keys": "0".repeat(64) } },
        { ...rest, images, files: { "a.md": { sha256: 1 } } },
        { ...rest, images: { "a.png": null }, files },
        { ...rest, images: [], files },
        null,
      ];
      for (const state of hostile) {
        await it.write("p/.stoa/product.json", JSON.stringify(state));
        const { code, stderr } = await it.stoa.run(["products", "pull", "p", "--force"]);
        assert.equal(code, 1, stderr);
        assert.match(stderr, /error: p\/\.stoa\/product\.json .*\nfix: Restore it, or delete it/);
      }
      assert.equal(await it.read("outside/keys"), "mine");
      await it.write("p/.stoa/product.json", own);
      assert.deepEqual(await it.ok("products", "diff", "p", "--exit-code"), { id, local: [], remote: [] });
    }));

  test("a folder .stoa that is a link: exit code 1, and its target stays as it is", () =>
    withSeller(async (it) => {
      await it.ok("init", "p");
      await it.write("target/notes.txt", "mine");
      await symlink("../target", join(it.stoa.folder, "p/.stoa"));
      const { code, stderr } = await it.stoa.run(["products", "push", "p"]);
      assert.equal(code, 1, stderr);
      assert.match(stderr, /error: p\/\.stoa is neither a file nor a folder\nfix: /);
      assert.deepEqual(Object.keys(await filesIn(it, "target")), ["notes.txt"]);
      assert.equal((await it.seller.get("/v1/products?author=me")).body.meta.total, 0);
      await it.ok("init", "q");
      const names = await readdir(join(it.stoa.folder, "q"));
      const id = await createDraft(it.seller);
      const pulled = await it.stoa.run(["products", "pull", id, "q"]);
      assert.match(pulled.stderr, /error: q already has prompt.md\nfix: /);
      assert.deepEqual(await readdir(join(it.stoa.folder, "q")), names);
    }));

  test("deleted on the service, of another account, of another service: errors that name the way out", () =>
    withSeller(async (it) => {
      await it.ok("init", "p");
      const { id } = await it.ok("products", "push", "p");
      const other = await market.createUser();
      const foreign = await it.stoa.run(["products", "push", "p"], { env: { STOA_API_KEY: other.key } });
      assert.match(foreign.stderr, /error: The service has no product .* for you/);
      const elsewhere = await it.stoa.run(["products", "push", "p"], {
        env: { STOA_BASE_URL: "http://127.0.0.1:9/v1" },
      });
      assert.equal(elsewhere.code, 1);
      assert.match(elsewhere.stderr, /belongs to a product of http.*\nfix: /);
      await it.seller.delete(`/v1/products/${id}`);
      const gone = await it.stoa.run(["products", "push", "p"]);
      assert.equal(gone.code, 2);
      assert.match(gone.stderr, /it was deleted.*\nfix: .*delete its folder .stoa/);
    }));

  test("hostile names and addresses of the service: nothing leaves the folder", async () => {
    const proxy = await startFaultProxy(market.origin);
    await withSeller(async (it) => {
      const id = await createDraft(it.seller);
      const product = await productOf(it, id);
      const file = {
        id: "file_1",
        size: 1,
        type: "text/plain",
        sha256: "0".repeat(64),
        url: `${market.origin}/healthz`,
      };
      const names = ["../../evil.txt", "..", "/tmp/evil", "a\\b", "CON", "x\u0000y", ".bashrc"];
      const data = {
        ...product,
        files: names.map((name) => ({ ...file, name })),
        title: "\u001b]0;evil\u0007Title",
      };
      const body = JSON.stringify({ success: true, data, meta: { timestamp: "", request_id: "" } });
      proxy.decide = () => ({ status: 200, body, headers: { "content-type": "application/json" } });
      const { code, stderr, stdout } = await it.stoa.run(["products", "pull", id, "p"]);
      assert.equal(code, 0, stderr);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not appear
      assert.doesNotMatch(stderr + stdout, /[\x00\x07\x1b]/);
      assert.deepEqual(Object.keys(await filesIn(it, "p")), ["prompt.md"]);
      const damaged = { ...product, files: [{ ...file, name: "guide.md" }] };
      proxy.decide = () => ({
        status: 200,
        body: JSON.stringify({ success: true, data: damaged, meta: {} }),
      });
      const second = await it.stoa.run(["products", "pull", "p"]);
      assert.equal(second.code, 2);
      assert.match(second.stderr, /files\/guide.md arrived damaged|Cannot download/);
    }, proxy.origin).finally(() => proxy.close());
  });
});

suite("interruptions", () => {
  async function withProxy(work: (it: Seller, proxy: FaultProxy) => Promise<void>): Promise<void> {
    const proxy = await startFaultProxy(market.origin);
    await withSeller((it) => work(it, proxy), proxy.origin).finally(() => proxy.close());
  }
  const count = async ({ seller }: Seller) => (await seller.get("/v1/products?author=me")).body.meta.total;

  test("Ctrl-C while the response to the creation is lost: a repeat makes no second product", () =>
    withProxy(async (it, proxy) => {
      await it.ok("init", "p");
      proxy.decide = (n) => (proxy.requests[n]?.method === "POST" ? "lose-response" : "pass");
      const command = it.stoa.start(["products", "push", "p"]);
      await until("the product exists", async () => (await count(it)) === 1, LIMIT_MS);
      command.child.kill("SIGINT");
      const { code } = await command.ended;
      assert.equal(code, 130);
      proxy.decide = () => "pass";
      await it.edit("p/prompt.md", "price: 4.99", "price: 6.5");
      const product = await it.ok("products", "push", "p");
      assert.equal(await count(it), 1);
      assert.deepEqual([product.price, product.id], [6.5, (await it.state()).id]);
    }));

  test("the response to a creation was lost a day ago: no second product, and the error says what to do", () =>
    withProxy(async (it, proxy) => {
      await it.ok("init", "p");
      proxy.decide = () => ({ status: 503 });
      assert.equal((await it.stoa.run(["products", "push", "p"])).code, 2);
      proxy.decide = () => "pass";
      await it.edit("p/.stoa/product.json", /"at": "[^"]+"/, '"at": "2026-01-01T00:00:00.000Z"');
      const { code, stderr } = await it.stoa.run(["products", "push", "p"]);
      assert.equal(code, 2, stderr);
      assert.match(
        stderr,
        /error: A push at 2026-01-01.* may have created the product\nfix: .*pull <id> p --force/,
      );
      assert.equal(await count(it), 0);
    }));

  test("Ctrl-C in the middle of a first pull: a repeat completes the folder, each file once", () =>
    withProxy(async (it, proxy) => {
      const id = await createDraft(it.seller);
      for (const name of ["a.md", "b.md"]) await uploadFile(it.seller, id, { name, bytes: `# ${name}\n` });
      for (const red of [1, 200]) await sendImage(it.seller, id, { bytes: await picture({ red }) });
      const product = await productOf(it, id);
      const attachments = [product.files, product.gallery].flat();
      for (const attachment of attachments) {
        const { url } = attachment;
        attachment.url = `${proxy.origin}/hangs`;
        const body = JSON.stringify({ success: true, data: product, meta: {} });
        proxy.decide = (n) => (proxy.requests[n]?.url === "/hangs" ? "hang" : { status: 200, body });
        const start = proxy.requests.length;
        const command = it.stoa.start(["products", "pull", id, "p"]);
        await until(
          "a download",
          () => proxy.requests.slice(start).some((each) => each.url === "/hangs"),
          LIMIT_MS,
        );
        command.child.kill("SIGINT");
        assert.equal((await command.ended).code, 130);
        attachment.url = url;
      }
      proxy.decide = () => "pass";
      await it.ok("products", "pull", id, "p");
      const names = ["files/a.md", "files/b.md", "images/01.webp", "images/02.webp", "prompt.md"];
      assert.deepEqual(Object.keys(await filesIn(it, "p")), names);
      assert.deepEqual(await it.ok("products", "diff", "p"), { id, local: [], remote: [] });
    }));

  test("Ctrl-C at each later request of a push: a repeat brings the product to what the folder has", () =>
    withProxy(async (it, proxy) => {
      await it.ok("init", "p");
      await it.write("p/files/a.md", "# A\n");
      await it.write("p/files/b.md", "# B\n");
      await it.write("p/images/1.png", await picture({ red: 1 }));
      await it.write("p/images/2.png", await picture({ red: 200 }));
      for (let last = 1; ; last++) {
        const start = proxy.requests.length;
        const stopped = { now: false };
        proxy.decide = (n) => {
          if (n - start < last) return "pass";
          stopped.now = true;
          return "lose-response";
        };
        const command = it.stoa.start(["products", "push", "p"]);
        const ended = await Promise.race([
          command.ended,
          until("a request is lost", () => stopped.now, LIMIT_MS).then(() => undefined),
        ]);
        if (ended) {
          assert.equal(ended.code, 0, ended.stderr);
          break;
        }
        command.child.kill("SIGINT");
        assert.equal((await command.ended).code, 130);
      }
      proxy.decide = () => "pass";
      assert.equal(await count(it), 1);
      const product = await it.ok("products", "push", "p");
      assert.deepEqual(product.files.map(({ name }: { name: string }) => name).toSorted(), ["a.md", "b.md"]);
      assert.equal(product.gallery.length, 2);
      assert.deepEqual(await it.ok("products", "diff", "p"), { id: product.id, local: [], remote: [] });
    }));

  test("two pushes at once in one folder: one product, and the second command says why it ends", () =>
    withProxy(async (it, proxy) => {
      await it.ok("init", "p");
      const released = { now: false };
      proxy.decide = (n) => (proxy.requests[n]?.method === "POST" && !released.now ? "hang" : "pass");
      const first = it.stoa.start(["products", "push", "p"]);
      await until("the first request", () => proxy.requests.length > 0, LIMIT_MS);
      const second = await it.stoa.run(["products", "push", "p"]);
      assert.equal(second.code, 2);
      assert.match(second.stderr, /error: Another stoa command is at work here\nfix: /);
      first.child.kill("SIGKILL");
      await first.ended;
      released.now = true;
      await it.ok("products", "push", "p");
      assert.equal(await count(it), 1);
    }));

  test("two folders of one product at once: the later push is refused, nothing is lost", () =>
    withSeller(async (it) => {
      const id = await createDraft(it.seller, haiku);
      for (const folder of ["p", "q"]) await it.ok("products", "pull", id, folder);
      await it.edit("p/prompt.md", "price: 4.99", "price: 5");
      await it.edit("q/prompt.md", "price: 4.99", "price: 6");
      const both = await Promise.all(["p", "q"].map((folder) => it.stoa.run(["products", "push", folder])));
      assert.deepEqual(
        both.map(({ code }) => code).toSorted(),
        [0, 2],
        both.map(({ stderr }) => stderr).join(),
      );
      const winner = both[0]?.code === 0 ? 5 : 6;
      assert.equal((await productOf(it, id)).price, winner);
    }));
});
