import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { after, before, suite, test } from "node:test";
import { sql } from "kysely";
import { createDraft, createProduct, haiku } from "../../../test/factories.ts";
import { inFullRun, isFullSize, runs } from "../../../test/full-size.ts";
import { exportOf, JSONL, jsonLines, MARKDOWN, sendImport, ZIP, zipOf } from "../../../test/import-export.ts";
import { waitForBlockedStatements } from "../../../test/locks.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { askedDuring, costOf } from "../../../test/statements.ts";
import { picture, sendImage, uploadFile } from "../../../test/uploads.ts";
import { anonymizeAccount, lockAccountForClosing } from "../../accounts/people/accounts.ts";
import type { Member } from "../../core/context.ts";
import { toUuid } from "../../core/ids.ts";
import { publishTogether } from "../products/moves.ts";

let market: Market;
let seller: Client;
before(async () => {
  market = await openMarket();
  seller = await market.createUser();
});
after(() => market.close());

const countOf = async (client: Client) => (await exportOf(client)).length;
const counts = ({ body, text }: Reply) => {
  assert.ok(body.success, text);
  const { created, updated, unchanged } = body.data;
  return [created, updated, unchanged];
};
/** Line (or file and line), field and reason of each problem. */
const problemsIn = (details: { errors: { file?: string; line: number; field: string; reason: string }[] }) =>
  details.errors.map(
    ({ file, line, field, reason }) => `${file ? `${file}:` : ""}${line} ${field} ${reason}`,
  );

const file = (front: string, body = "Write about {{topic}}.") => `---\n${front}\n---\n\n${body}\n`;
const front =
  'title: Haiku\ntype: PROMPT\nprice: 4.99\ncategory: writing\ncompatibility: [openai]\ndescription: "Three lines"';

suite("POST /products/import: new products", () => {
  test("creates drafts in the order of the lines, and makes the author a seller", async () => {
    const user = await market.createUser({ role: "user" });
    const reply = await sendImport(
      user,
      `${jsonLines({ ...haiku, title: "A" })}\n\n${jsonLines({ ...haiku, title: "B" })}\r\n`,
    );
    assert.deepEqual(counts(reply), [2, 0, 0]);
    const [first, second] = reply.body.data.products;
    assert.deepEqual(
      { ...first, id: 0 },
      { line: 1, id: 0, title: "A", status: "draft", outcome: "created" },
    );
    assert.equal(second.line, 3, "blank lines count as lines");
    assert.deepEqual(
      (await exportOf(user)).map(({ id, title }) => [id, title]),
      [
        [first.id, "A"],
        [second.id, "B"],
      ],
    );
    const session = await market.createSession(user.userId);
    assert.equal((await session.get("/v1/account")).body.data.role, "seller");
    const list = await user.get("/v1/products?author=me");
    assert.equal(list.body.meta.total, 2, "lists know them");
  });

  test("JSON Lines by either media type, with a byte order mark and parameters", async () => {
    for (const type of [JSONL, "application/x-ndjson", "Application/JSONL; charset=utf-8"])
      assert.deepEqual(counts(await sendImport(seller, `\ufeff${jsonLines(haiku)}\n`, { type })), [1, 0, 0]);
  });

  test("a Markdown file: front matter, an empty line, content", async () => {
    const user = await market.createUser();
    assert.deepEqual(
      counts(await sendImport(user, file(front, "\n  a\n---\nb\n"), { type: MARKDOWN })),
      [1, 0, 0],
    );
    const [product] = await exportOf(user);
    assert.equal(product!["content"], "\n  a\n---\nb\n");
  });

  test("a Markdown file with Windows line ends: the same product", async () => {
    const user = await market.createUser();
    const text = file(`id: mine\n${front}`, "one\ntwo");
    assert.deepEqual(counts(await sendImport(user, text, { type: MARKDOWN })), [1, 0, 0]);
    const windows = `\ufeff${text.replaceAll("\n", "\r\n")}`;
    assert.deepEqual(counts(await sendImport(user, windows, { type: MARKDOWN })), [0, 0, 1]);
  });

  test("a zip of a folder: its products, without unrelated files", async () => {
    const user = await market.createUser();
    const zip = await zipOf({
      "prompts/a.md": file(front, "A"),
      "prompts/deep/b.markdown": file(front, "B"),
      "prompts/README.md": "# My prompts",
      "prompts/.github/c.md": "no product",
      "__MACOSX/prompts/._a.md": "no product",
      "prompts/picture.png": "no product",
    });
    const reply = await sendImport(user, zip, { type: ZIP });
    assert.deepEqual(
      reply.body.data.products.map(({ file, line }: { file: string; line: number }) => [file, line]),
      [
        ["prompts/a.md", 1],
        ["prompts/deep/b.markdown", 1],
      ],
      reply.text,
    );
  });

  test("missing optional fields: the defaults of POST /products", async () => {
    const [posted, imported] = [await market.createUser(), await market.createUser()];
    const least = { title: "Least", type: "PROMPT", price: 1, content: "x" };
    await posted.post("/v1/products", least);
    await sendImport(imported, jsonLines(least));
    const [a, b] = [await exportOf(posted), await exportOf(imported)];
    assert.deepEqual({ ...a[0], id: 0 }, { ...b[0], id: 0 });
  });
});

suite("POST /products/import: mistakes", () => {
  test("all problems with their lines, in order; nothing is written", async () => {
    const user = await market.createUser();
    const id = await createDraft(user);
    const before = await exportOf(user);
    const lines = [
      JSON.stringify(haiku),
      '{"title": ',
      JSON.stringify({ ...haiku, price: 4.999, category: "nonsense", variables: [{ name: "other" }] }),
      "",
      JSON.stringify({ ...haiku, title: "", colour: "red", content: undefined }),
      "[]",
      JSON.stringify({ id, price: -1 }),
      JSON.stringify({ id: "mine", ...haiku }),
      JSON.stringify({ id: "mine", ...haiku }),
      JSON.stringify({ id, type: "WORKFLOW" }),
    ];
    const reply = await sendImport(user, lines.join("\n"));
    const details = assertError(reply, 400, "INVALID_REQUEST");
    assert.deepEqual(problemsIn(details), [
      "2 product is not valid JSON",
      "3 price has more decimals than USD",
      "3 variables does not declare topic, which the content uses",
      "3 variables does not declare language, which the content uses",
      "5 title must have at least 1 character",
      "5 content is required",
      "5 colour is not known here",
      "6 product must be an object",
      "7 price price must be positive",
      "9 id is that of line 8 too",
      "10 id is that of line 7 too",
    ]);
    assert.equal(details.total, details.errors.length);
    assert.deepEqual([details.line, details.field], [details.errors[0].line, details.errors[0].field]);
    assert.deepEqual(await exportOf(user), before);
  });

  test("an unknown category", async () => {
    const reply = await sendImport(seller, jsonLines(haiku, { ...haiku, category: "nonsense" }));
    assert.deepEqual(problemsIn(assertError(reply, 400, "INVALID_REQUEST")), [
      "2 category is not a slug of GET /categories",
    ]);
  });

  test("over a hundred problems: reports a hundred and the number of the rest", async () => {
    const lines = Array.from({ length: 300 }, () => ({ ...haiku, price: 0 }));
    const details = assertError(await sendImport(seller, jsonLines(...lines)), 400, "INVALID_REQUEST");
    assert.deepEqual([details.errors.length, details.total], [100, 300]);
  });

  test("a business rule: 422", async () => {
    const user = await market.createUser();
    const id = await createProduct(user);
    const reply = await sendImport(
      user,
      jsonLines({ ...haiku, title: "New" }, { id, description: "" }, { id: "x", ...haiku }),
    );
    const details = assertError(reply, 422, "VALIDATION_ERROR", "description");
    assert.equal(details.line, 2);
    assertError(
      await sendImport(user, jsonLines({ id, currency: "EUR" })),
      422,
      "VALIDATION_ERROR",
      "currency",
    );
    assertError(await sendImport(user, jsonLines({ id, type: "WORKFLOW" })), 422, "VALIDATION_ERROR", "type");
    const both = await sendImport(user, jsonLines({ ...haiku, price: 0 }, { id, description: "" }));
    assertError(both, 400, "INVALID_REQUEST", "price");
    assert.equal(await countOf(user), 1);
  });

  test("a problem in front matter: has the line of its key", async () => {
    const text = file(
      [
        "title: Haiku",
        "type: PROMPT",
        "price: many",
        "variables:",
        "  - name: topic",
        "  - name: 1st",
        "colour: red",
      ].join("\n"),
    );
    assert.deepEqual(
      problemsIn(
        assertError(await sendImport(seller, text, { type: MARKDOWN }), 400, "INVALID_REQUEST"),
      ).toSorted(),
      [
        "4 price must be a number",
        "7 variables[1].name must be a name such as topic",
        "8 colour is not known here",
      ],
    );
    const messages = file(`${front}\ncontentFormat: messages`, '[{"role":"nobody","content":"x"}]');
    const zip = await zipOf({ "a.md": file(front), "b/c.md": messages });
    assert.deepEqual(
      problemsIn(assertError(await sendImport(seller, zip, { type: ZIP }), 400, "INVALID_REQUEST")),
      ["b/c.md:11 content[0].role must be one of system, user, assistant"],
    );
  });

  for (const [what, text, problem] of [
    ["no front matter", "# A heading\n", /^1 product must begin with front matter/],
    ["front matter without an end", "---\ntitle: x\n", /^1 product has front matter without an end/],
    ["front matter that is a list", file("- a\n- b"), /^2 product must have front matter/],
    [
      "front matter of two documents",
      file(`${front}\n...\ntitle: again`),
      /^2 product must have front matter/,
    ],
    ["nothing between the fences", "---\n---\nx", /^2 product must have front matter/],
    ["a key twice", file(`${front}\ntitle: again`), /^8 product is not plain YAML: duplicated mapping key/],
    ["a wrong indent", file("title: x\n  price: 2\n bad"), /^\d product is not plain YAML/],
    ["the content in the front matter", file(`${front}\ncontent: x`), /^8 content is below the front matter/],
    ["an alias", file("title: &a [x]\ntags: *a"), /^3 product is not plain YAML: aliases/],
    ["a tag", file("title: !!js/function x"), /^2 product is not plain YAML/],
    ["a tag of our own", file("title: !secret x"), /^2 product is not plain YAML/],
    [
      "a name of JavaScript's",
      file(`${front}\n__proto__: {a: 1}`),
      /__proto__ is not a name that can be used/,
    ],
    ["a NUL", file(front, "a\0b"), /content must not contain NUL characters/],
    ["no content", file(front, ""), /content must have at least 1 character/],
    [
      "text that is no UTF-8",
      new Uint8Array([0x2d, 0x2d, 0x2d, 0x0a, 0xff, 0x0a]),
      /^1 product is not valid UTF-8/,
    ],
    [
      "20,001 lines and commas of front matter",
      file(`description: |\n${"  a, b\n".repeat(10_000)}`),
      /^2 product has more than 20,000 lines and commas/,
    ],
    [
      "more than 5,000 values in front matter",
      file(`tags: [${"a,".repeat(15_000)}a]`),
      /^2 product has more than 5,000 values/,
    ],
    ["65 levels", file(`title: ${"[".repeat(65)}x${"]".repeat(65)}`), /nesting exceeded/],
    ["ten thousand brackets", file(`title: ${"[".repeat(10_000)}`), /^\d+ product /],
    [
      "a bomb of aliases",
      file(
        `a: &a [x,x,x]\n${Array.from({ length: 20 }, (_, at) => `b${at}: &b${at} [*${at ? `b${at - 1}` : "a"},*${at ? `b${at - 1}` : "a"}]`).join("\n")}`,
      ),
      /product is not plain YAML: aliases/,
    ],
  ] as const) {
    test(`a Markdown file: ${what}`, async () => {
      const reply = await sendImport(seller, text, { type: MARKDOWN });
      assert.match(problemsIn(assertError(reply, 400, "INVALID_REQUEST"))[0]!, problem);
    });
  }

  for (const [what, line, problem] of [
    ["a NUL", '{"title":"a\\u0000"}', "1 title must not contain NUL characters"],
    ["half a pair", '{"title":"\\ud800"}', "1 title must not contain half of a surrogate pair"],
    ["a name of JavaScript's", '{"__proto__":{}}', "1 __proto__ is not a name that can be used"],
    ["65 levels", `{"a":${"[".repeat(64)}${"]".repeat(64)}}`, "1 product is nested deeper than 64 levels"],
    ["text that is no UTF-8", new Uint8Array([0x7b, 0xff, 0x7d]), "1 product is not valid UTF-8"],
    [
      "5,001 members",
      `{"tags":[${"1,".repeat(4_999)}1]}`,
      "1 product has more than 5,000 members and elements together",
    ],
    ["null", "null", "1 product must be an object"],
    ["a line of 5 MB", `{"title":"${"x".repeat(5_000_000)}"}`, "1 product is larger than 4194304 bytes"],
  ] as const) {
    test(`a line: ${what}`, async () => {
      assert.deepEqual(problemsIn(assertError(await sendImport(seller, line), 400, "INVALID_REQUEST")), [
        problem,
      ]);
    });
  }
});

/** The share of this thread's CPU time that the longest turn of its event loop used. */
async function longestShare(work: () => Promise<unknown>): Promise<number> {
  let [longest, all, since] = [0, 0, process.threadCpuUsage()];
  const count = () => {
    const { user, system } = process.threadCpuUsage(since);
    longest = Math.max(longest, user + system);
    all += user + system;
    since = process.threadCpuUsage();
    turning = setImmediate(count);
  };
  let turning = setImmediate(count);
  await work();
  clearImmediate(turning);
  return longest / all;
}

suite("POST /products/import: known products", () => {
  test("by id: changes the fields of the line only", async () => {
    const user = await market.createUser();
    const [a, b] = [await createProduct(user), await createDraft(user)];
    const reply = await sendImport(user, jsonLines({ id: a, price: 7 }, { id: b, ...haiku }));
    assert.deepEqual(counts(reply), [0, 1, 1]);
    assert.deepEqual(
      reply.body.data.products.map(({ id, status, outcome }: Record<string, string>) => [
        id,
        status,
        outcome,
      ]),
      [
        [a, "published", "updated"],
        [b, "draft", "unchanged"],
      ],
    );
    const { price, title, version } = (await user.get(`/v1/products/${a}`)).body.data;
    assert.deepEqual([price, title, version], [7, haiku.title, "1.0.0"]);
  });

  test("by externalId: no second product, updates follow the file", async () => {
    const user = await market.createUser();
    const send = (content: string) =>
      sendImport(user, file(`id: haikus/rain\n${front}`, content), { type: MARKDOWN });
    assert.deepEqual(counts(await send("One")), [1, 0, 0]);
    assert.deepEqual(counts(await send("One")), [0, 0, 1]);
    assert.deepEqual(counts(await send("Two")), [0, 1, 0]);
    const [product, ...others] = await exportOf(user);
    assert.deepEqual([product!["content"], others], ["Two", []]);
  });

  test("a deleted product's id or externalId: creates a new product", async () => {
    const user = await market.createUser();
    const line = jsonLines({ id: "rain", ...haiku });
    const { id } = (await sendImport(user, line)).body.data.products[0];
    await user.delete(`/v1/products/${id}`);
    assert.deepEqual(counts(await sendImport(user, line)), [1, 0, 0]);
    assert.deepEqual(counts(await sendImport(user, line)), [0, 0, 1]);
    assert.deepEqual(counts(await sendImport(user, jsonLines({ id, ...haiku }))), [1, 0, 0]);
    assert.equal(await countOf(user), 2);
  });

  test("long unchanged contents: compared without blocking other requests", async () => {
    const user = await market.createUser();
    const content = "Write {{topic}}. ".repeat(5_000);
    const products = isFullSize ? 60 : 30;
    const lines = jsonLines(
      ...Array.from({ length: products }, (_, at) => ({ ...haiku, id: `p${at}`, content })),
    );
    await sendImport(user, lines);
    const shares: number[] = [];
    const isShort = (share: number) => share < 1 / 8;
    // One of several tries: a garbage collection delays one of them, a long step delays all.
    for (let times = 0; times < 3 && !shares.some(isShort); times++)
      shares.push(
        await longestShare(async () =>
          assert.deepEqual(counts(await sendImport(user, lines)), [0, 0, products]),
        ),
      );
    assert.ok(shares.some(isShort), `${shares}`);
  });

  test("the same externalId of two sellers: two products", async () => {
    const [one, other] = [await market.createUser(), await market.createUser()];
    const line = jsonLines({ id: "rain", ...haiku });
    assert.deepEqual(counts(await sendImport(one, line)), [1, 0, 0]);
    assert.deepEqual(counts(await sendImport(other, line)), [1, 0, 0]);
  });

  test("an externalId and an id of one product in one file: refused", async () => {
    const user = await market.createUser();
    const { id } = (await sendImport(user, jsonLines({ id: "rain", ...haiku }))).body.data.products[0];
    const reply = await sendImport(user, jsonLines({ id: "rain", price: 2 }, { id, price: 3 }));
    assert.deepEqual(problemsIn(assertError(reply, 400, "INVALID_REQUEST")), ["2 id is that of line 1 too"]);
  });

  test("a published product with other content: a new version, also with an old version's file", async () => {
    const user = await market.createUser();
    const id = await createProduct(user);
    const [exported] = await exportOf(user);
    const send = async (change: object) => {
      const reply = await sendImport(user, jsonLines({ ...exported, ...change }));
      const { version, changelog } = (await user.get(`/v1/products/${id}`)).body.data;
      return [...counts(reply), version, changelog];
    };
    assert.deepEqual(await send({ content: "On {{topic}} in {{language=English}}." }), [
      0,
      1,
      0,
      "1.1.0",
      "",
    ]);
    assert.deepEqual(await send({ content: "On {{topic}} in {{language=English}}." }), [
      0,
      0,
      1,
      "1.1.0",
      "",
    ]);
    assert.deepEqual(await send({ content: "Of {{topic}} in {{language=English}}.", changelog: "Of" }), [
      0,
      1,
      0,
      "1.2.0",
      "Of",
    ]);
    assert.deepEqual(
      await send({ content: "Of {{topic}} in {{language=English}}.", version: "2.0.0", changelog: "Two" }),
      [0, 1, 0, "2.0.0", "Two"],
    );
    assert.deepEqual(
      await send({ content: "Of {{topic}} in {{language=English}}.", version: "2.0.0", changelog: "Two" }),
      [0, 0, 1, "2.0.0", "Two"],
    );
    const old = { version: "2.0.0", changelog: "Two" };
    assert.deepEqual(
      await send({ content: "To {{topic}} in {{language=English}}.", ...old }),
      [0, 1, 0, "2.1.0", ""],
      "an old note",
    );
    const events = (await user.get("/v1/events?type=product.updated")).body.data;
    assert.equal(events.length, 4, "an event a change, and none for what is the same");
    assert.match(JSON.stringify(events[0].data.product.changes), /2\.1\.0/);
  });

  for (const [what, has] of [
    ["a draft", createDraft],
    ["what is on sale", createProduct],
  ] as const) {
    test(`files and images of ${what}: stay`, async () => {
      const user = await market.createUser();
      const id = await has(user);
      await uploadFile(user, id, { name: "guide.md" });
      assert.equal((await sendImage(user, id, { bytes: await picture() })).status, 201);
      assert.deepEqual(
        counts(await sendImport(user, jsonLines({ id, content: "On {{topic}} in {{language=English}}." }))),
        [0, 1, 0],
      );
      const { content, files, images } = (await user.get(`/v1/products/${id}`)).body.data;
      assert.equal(content, "On {{topic}} in {{language=English}}.");
      assert.deepEqual([files.map(({ name }: { name: string }) => name), images.length], [["guide.md"], 1]);
    });
  }

  test("derived variables follow the content, declared ones stay", async () => {
    const user = await market.createUser();
    await createDraft(user);
    const [exported] = await exportOf(user);
    await sendImport(user, jsonLines({ ...exported, content: "On {{animal}}" }));
    const { variables } = (await user.get(`/v1/products/${exported!["id"]}`)).body.data;
    assert.deepEqual(
      variables.map(({ name }: { name: string }) => name),
      ["animal"],
    );
  });

  test("files and images: stay, of a draft and of a published product", async () => {
    const user = await market.createUser();
    const ids = [await createDraft(user), await createDraft(user)];
    for (const id of ids) {
      await uploadFile(user, id, { name: "guide.md" });
      assert.equal((await sendImage(user, id, { bytes: await picture() })).status, 201);
    }
    await user.post(`/v1/products/${ids[0]}/publish`);
    const reply = await sendImport(
      user,
      jsonLines(...ids.map((id) => ({ id, content: "On {{topic}} in {{language=English}}." }))),
    );
    assert.deepEqual(counts(reply), [0, 2, 0]);
    for (const id of ids) {
      const { files, images } = (await user.get(`/v1/products/${id}`)).body.data;
      assert.deepEqual([files.map(({ name }: { name: string }) => name), images.length], [["guide.md"], 1]);
    }
  });

  /** Runs an import that waits for the product's lock while the statement `set` changes the product. */
  async function overtaken(id: string, user: Client, line: object, set: string): Promise<Reply> {
    const uuid = toUuid("prod", id);
    const { reply } = await market.service.ctx.db.transaction().execute(async (tx) => {
      await sql`select from products where id = ${uuid} for update`.execute(tx);
      const reply = sendImport(user, jsonLines({ id, ...line }));
      await waitForBlockedStatements(market);
      await sql`update products set ${sql.raw(set)} where id = ${uuid}`.execute(tx);
      return { reply };
    });
    return reply;
  }

  test("a product changed meanwhile: checked again, and new problems have their lines", async () => {
    const user = await market.createUser();
    const [draft, sold] = [await createDraft(user), await createProduct(user)];
    const published = "first_published_at = created_at";
    const refused = await overtaken(draft, user, { currency: "EUR" }, published);
    assert.equal(assertError(refused, 422, "VALIDATION_ERROR", "currency").line, 1);
    const changed = await overtaken(sold, user, { price: 7 }, "status = 'unpublished'");
    assert.equal(changed.body.data.products[0].status, "unpublished");
  });

  test("a concurrent sale or view: waits, then both succeed", async () => {
    const user = await market.createUser();
    const id = await createProduct(user);
    const imported = await market.service.ctx.db.transaction().execute(async (tx) => {
      await sql`select from product_stats where product_id = ${toUuid("prod", id)} for update`.execute(tx);
      const reply = sendImport(user, jsonLines({ id, price: 7 }));
      await waitForBlockedStatements(market);
      await sql`select from products where id = ${toUuid("prod", id)} for key share`.execute(tx);
      return { reply };
    });
    assert.deepEqual(counts(await imported.reply), [0, 1, 0]);
  });

  test("a change of a published product: in lists at once", async () => {
    const user = await market.createUser();
    const id = await createProduct(user, { title: "Before the import" });
    await sendImport(user, jsonLines({ id, title: "After the import" }));
    const list = await user.get("/v1/products?author=me");
    assert.equal(list.body.data[0].title, "After the import");
  });

  test("parallel imports: each product once", async () => {
    const user = await market.createUser();
    const body = jsonLines(...[1, 2, 3].map((at) => ({ ...haiku, id: `p${at}`, title: `Haiku ${at}` })));
    const replies = await Promise.all(Array.from({ length: runs(20) }, () => sendImport(user, body)));
    for (const reply of replies) assert.equal(reply.status, 200, reply.text);
    const made = replies.map(({ body }) => body.data.created).toSorted((a, b) => b - a);
    assert.deepEqual(made, [3, ...Array(runs(20) - 1).fill(0)]);
    assert.equal(await countOf(user), 3);
  });

  test("many parallel imports of one seller: connections remain for other requests", async () => {
    const user = await market.createUser();
    const other = await market.createUser();
    const { db } = market.service.ctx;
    const replies = await db.transaction().execute(async (tx) => {
      await tx.updateTable("users").set({ bio: "held" }).where("id", "=", user.userId).execute();
      const sent = Array.from({ length: 10 }, (_, at) =>
        sendImport(user, jsonLines({ ...haiku, id: `p${at}` })),
      );
      await waitForBlockedStatements(market);
      for (let at = 0; at < runs(30); at++) assert.equal((await other.get("/v1/products")).status, 200);
      return sent;
    });
    for (const { status, text } of await Promise.all(replies)) assert.equal(status, 200, text);
  });

  test("concurrent changes, publishing and deletion: a complete product, never a fault", async () => {
    const user = await market.createUser();
    const ids = await Promise.all([1, 2, 3, 4].map(() => createDraft(user)));
    const storm = Array.from({ length: isFullSize ? 8 : 3 }, (_, round) => [
      sendImport(
        user,
        jsonLines(
          ...ids.map((id) => ({
            id,
            price: round + 1,
            content: `On {{topic}} in {{language=English}} ${round}`,
          })),
        ),
      ),
      ...ids.map((id) => user.patch(`/v1/products/${id}`, { title: `Haiku ${round}` })),
      user.post(`/v1/products/${ids[round % 4]}/publish`),
      user.post(`/v1/products/${ids[(round + 1) % 4]}/unpublish`),
    ]).flat();
    const replies = await Promise.all(storm);
    for (const { status, text } of replies) assert.ok([200, 409, 422].includes(status), text);
    for (const product of await exportOf(user)) {
      const round = Number(String(product["content"]).split(" ").at(-1));
      assert.equal(product["price"], round + 1, "price and content of one import");
    }
  });

  test("51 changes, later products first: they are locked in order of id, as a publication locks them", async () => {
    const user = await market.createUser();
    const lines = Array.from({ length: 51 }, (_, n) => ({
      ...haiku,
      id: `locked-${n}`,
      title: `Locked ${n}`,
    }));
    const { products } = (await sendImport(user, jsonLines(...lines))).body.data;
    const changes = lines.toReversed().map((line) => ({ ...line, price: 9 }));
    const asked = await askedDuring(() => sendImport(user, jsonLines(...changes)));
    const locks = asked.filter(({ text }) => /from products[^;]*for no key update/.test(text));
    const ids: string[] = products.map(({ id }: { id: string }) => toUuid("prod", id));
    assert.deepEqual(
      locks.flatMap(({ values }) => values[1]),
      ids.toSorted(),
    );
  });

  test("views being counted: each waits for the other without a deadlock", async () => {
    const user = await market.createUser();
    const id = await createDraft(user);
    const { db } = market.service.ctx;
    const { reply } = await db.transaction().execute(async (tx) => {
      const productId = toUuid("prod", id)!;
      await sql`select from product_stats where product_id = ${productId} for no key update`.execute(tx);
      const reply = sendImport(user, jsonLines({ id, price: 7 }));
      await waitForBlockedStatements(market);
      await sql`insert into product_daily_views values (${productId}, '2026-06-15', 1)`.execute(tx);
      return { reply };
    });
    assert.deepEqual(counts(await reply), [0, 1, 0]);
  });

  test("views of several products being counted: an import of them in another order waits without a deadlock", async () => {
    const user = await market.createUser();
    const ids = [await createDraft(user), await createDraft(user)];
    const [first, second] = ids.map((id) => toUuid("prod", id)!).toSorted();
    const { db } = market.service.ctx;
    const { reply } = await db.transaction().execute(async (tx) => {
      const lock = (id: string | undefined) =>
        sql`select from product_stats where product_id = ${id} for no key update`.execute(tx);
      await lock(first);
      const descending = ids.toSorted((a, b) => (toUuid("prod", a)! < toUuid("prod", b)! ? 1 : -1));
      const reply = sendImport(user, jsonLines(...descending.map((id) => ({ id, price: 7 }))));
      await waitForBlockedStatements(market);
      await lock(second);
      return { reply };
    });
    assert.deepEqual(counts(await reply), [0, 2, 0]);
  });

  test("imports of other sellers with the same new words: run in parallel", async () => {
    const [count, words] = isFullSize ? [6, 60] : [4, 30];
    const sellers = await Promise.all(Array.from({ length: count }, () => market.createUser()));
    const titles = Array.from({ length: words }, (_, at) => `zyx${String.fromCharCode(97 + (at % 26))}${at}`);
    const orders = [titles, titles.toReversed()];
    const replies = await Promise.all(
      sellers.map((one, at) =>
        sendImport(one, jsonLines(...orders[at % 2]!.map((title) => ({ ...haiku, title })))),
      ),
    );
    for (const reply of replies) assert.deepEqual(counts(reply), [titles.length, 0, 0]);
  });
});

suite("POST /products/import: options", () => {
  test("dryRun: reports the result and writes nothing", async () => {
    const user = await market.createUser();
    const id = await createDraft(user);
    const body = jsonLines({ ...haiku, id: "new" }, { id, price: 3 }, { ...haiku, id: "also new" });
    const reply = await sendImport(user, body, { query: "?dryRun=true" });
    assert.deepEqual(counts(reply), [2, 1, 0]);
    assert.equal(reply.body.data.dryRun, true);
    assert.deepEqual(
      reply.body.data.products.map(({ id }: { id: string | null }) => id),
      [null, id, null],
    );
    assert.equal(await countOf(user), 1);
    assert.equal((await exportOf(user))[0]!["price"], haiku.price);
    assertError(
      await sendImport(user, jsonLines({ ...haiku, price: 0 }), { query: "?dryRun=true" }),
      400,
      "INVALID_REQUEST",
      "price",
    );
  });

  test("publish: publishes what passes the checklist, and reports what the others lack", async () => {
    const user = await market.createUser();
    const body = jsonLines(
      { ...haiku, title: "Complete" },
      { ...haiku, title: "Lacking", description: "", compatibility: [] },
      { ...haiku, title: "Not yet", status: "draft" },
      { ...haiku, title: "As exported", status: "published" },
    );
    const reply = await sendImport(user, body, { query: "?publish=true" });
    assert.equal(reply.body.data.published, 2, reply.text);
    assert.deepEqual(
      reply.body.data.products.map(({ title, status, notPublished }: Record<string, unknown>) => [
        title,
        status,
        (notPublished as { field: string }[] | undefined)?.map(({ field }) => field),
      ]),
      [
        ["Complete", "published", undefined],
        ["Lacking", "draft", ["description", "compatibility"]],
        ["Not yet", "draft", undefined],
        ["As exported", "published", undefined],
      ],
    );
    assert.equal((await user.get("/v1/events?type=product.published")).body.data.length, 2);
    const ids = reply.body.data.products.map(({ id }: { id: string }) => ({ id }));
    const again = await sendImport(user, jsonLines({ ...ids[0] }), { query: "?publish=true" });
    assert.deepEqual([again.body.data.published, again.body.data.products[0].notPublished], [0, undefined]);
  });

  test("publish: no more statements for 25 products than for two, and 60 are all published", async () => {
    const user = await market.createUser();
    const products = (count: number, name: string) =>
      jsonLines(...Array.from({ length: count }, (_, n) => ({ ...haiku, title: `${name} ${n}` })));
    const send = (count: number, name: string) =>
      sendImport(user, products(count, name), { query: "?publish=true" });
    await send(1, "Warm");
    const costOfSending = async (count: number, name: string) => {
      await market.waitForNotifications();
      return costOf(await askedDuring(() => send(count, name)));
    };
    const few = await costOfSending(2, "Few");
    const many = await costOfSending(25, "Many");
    assert.equal(many.transactions, 2);
    assert.ok(many.statements <= few.statements, `${many.statements} statements, ${few.statements} for two`);
    assert.equal((await send(60, "Most")).body.data.published, 60);
    const { rows } = await market.query(
      `select (select count(*) from audit_log where actor_id = $1 and action = 'product.published') as audited,
              (select count(*) from event_recipients where user_id = $1 and type = 'product.published') as events,
              (select count(*) from product_scans s join products p on p.id = s.product_id where p.author_id = $1) as scanned,
              (select count(*) from search_documents d join listings l on l.product_id = d.product_id
                where l.author_id = $1 and d.published) as listed,
              (select count(distinct j.data ->> 'productId') from pgboss.job j join products p on p.id::text = j.data ->> 'productId'
                where p.author_id = $1 and j.name = 'check-for-copies') as "toCheck"`,
      [user.userId],
    );
    assert.deepEqual(rows, [{ audited: 88, events: 88, scanned: 88, listed: 88, toCheck: 88 }]);
  });

  test("publish: a product deleted and one published meanwhile are reported, the others are published", async () => {
    const user = await market.createUser();
    const names = ["one", "two", "three"];
    const lines = jsonLines(...names.map((id) => ({ ...haiku, id, title: `Meanwhile ${id}` })));
    const { products } = (await sendImport(user, lines)).body.data;
    const [one, two, three] = products.map(({ id }: { id: string }) => toUuid("prod", id));
    const caller = { kind: "key", userId: user.userId } as Member;
    await user.post(`/v1/products/${products[0].id}/publish`);
    await user.delete(`/v1/products/${products[1].id}`);
    const published = await publishTogether(market.service.ctx, caller, [one, two, three], null);
    assert.deepEqual(
      [one, two, three].map((id) => {
        const publication = published.get(id);
        return publication && ("error" in publication ? publication.error.code : publication.status);
      }),
      ["INVALID_STATE", "PRODUCT_NOT_FOUND", "published"],
    );
  });

  test("a repeated Idempotency-Key: the first answer; another query is another request", async () => {
    const user = await market.createUser();
    const body = jsonLines(haiku);
    const headers = { "idempotency-key": "import 1" };
    const first = await sendImport(user, body, headers);
    const repeat = await sendImport(user, body, headers);
    assert.equal(repeat.headers.get("idempotent-replayed"), "true");
    assert.deepEqual(repeat.body, first.body);
    assert.equal(await countOf(user), 1);
    assertError(
      await sendImport(user, body, { ...headers, query: "?dryRun=true" }),
      422,
      "IDEMPOTENCY_KEY_REUSED",
    );
    assert.equal((await sendImport(user, body, { ...headers, query: `?api_key=${user.key}` })).status, 200);
  });

  test("an unknown parameter, or one that is neither true nor false: refused", async () => {
    for (const query of ["?dryrun=true", "?dryRun=1", "?publish=yes"])
      assertError(await sendImport(seller, jsonLines(haiku), { query }), 400, "INVALID_REQUEST");
  });

  test("any other media type: 415 with the accepted ones", async () => {
    for (const type of [
      "application/json",
      "text/plain",
      "multipart/form-data; boundary=x",
      ";",
      "application/zipped",
    ]) {
      const reply = await sendImport(seller, jsonLines(haiku), { type });
      assertError(reply, 415, "UNSUPPORTED_MEDIA_TYPE");
      if (type !== ";") assert.match(reply.body.error.message, /application\/jsonl, .*application\/zip/);
    }
  });

  test("an empty body, or blanks only: refused", async () => {
    const empty = await seller.request("POST", "/v1/products/import");
    assertError(empty, 400, "INVALID_REQUEST", "body");
    for (const body of [" ", "\n\n", "\ufeff"])
      assertError(await sendImport(seller, body), 400, "INVALID_REQUEST", "body");
    assertError(
      await sendImport(seller, await zipOf({ "README.md": "x" }), { type: ZIP }),
      400,
      "INVALID_REQUEST",
      "body",
    );
  });

  test("over 1,000 products, 100,000 lines or 20 MiB: refused", async () => {
    const user = await market.createUser();
    const many = Array(1_001).fill(JSON.stringify(haiku)).join("\n");
    assert.match(
      assertError(await sendImport(user, many), 400, "INVALID_REQUEST", "body").reason,
      /1,000 products/,
    );
    const blank = await sendImport(user, "\n".repeat(100_001));
    assert.match(assertError(blank, 400, "INVALID_REQUEST", "body").reason, /100,000 lines/);
    assertError(await sendImport(user, " ".repeat(20 * 1024 * 1024 + 1)), 413, "PAYLOAD_TOO_LARGE");
    assert.equal(await countOf(user), 0);
  });

  /** Sends the head of an import without its body. */
  function begin(origin: string, { key }: Client): Promise<Socket> {
    const { hostname, port } = new URL(origin);
    const socket = connect(Number(port), hostname);
    socket.write(
      [
        "POST /v1/products/import HTTP/1.1",
        "Host: stoa",
        `Authorization: Bearer ${key}`,
        "Content-Type: application/jsonl",
        "Content-Length: 100000",
        "Expect: 100-continue",
        "\r\n",
      ].join("\r\n"),
    );
    return new Promise((resolve) => socket.once("data", () => resolve(socket)));
  }

  test("a stalled body: times out", inFullRun, async () => {
    const hasty = await openMarket({ requestDeadlines: { upload: { idleMs: 50, totalMs: 30_000 } } });
    const socket = await begin(hasty.origin, await hasty.createUser());
    const answer = await new Promise<string>((resolve) =>
      socket.once("data", (data) => resolve(String(data))),
    );
    assert.match(answer, /^HTTP\/1.1 400 /);
    assert.match(answer, /body: stood still for 0.05 seconds/);
    socket.destroy();
    await hasty.close();
  });

  test("over two of one account: queue unread; over twenty in the queue: refused; other accounts are not", async () => {
    const [user, other] = [await market.createUser(), await market.createUser()];
    await user.get("/v1/products");
    const open = [await begin(market.origin, user), await begin(market.origin, user)];
    await sendImport(other, jsonLines(haiku));
    const refused = Promise.withResolvers<void>();
    let count = 0;
    const sent = Array.from({ length: 30 }, async (_, at) => {
      const reply = await sendImport(user, jsonLines({ ...haiku, id: `p${at}` }));
      if (reply.status === 429 && ++count === 10) refused.resolve();
      return reply;
    });
    await refused.promise;
    assert.equal(await countOf(user), 0);
    assert.equal((await sendImport(other, jsonLines(haiku))).status, 200);
    for (const socket of open) socket.destroy();
    const replies = await Promise.all(sent);
    const waited = replies.filter(({ status }) => status === 200);
    assert.deepEqual([waited.length, await countOf(user)], [20, 20]);
    for (const reply of replies.filter((one) => !waited.includes(one)))
      assert.equal(assertError(reply, 429, "RATE_LIMIT_EXCEEDED") ?? reply.headers.get("retry-after"), "1");
  });

  test("the account closes meanwhile: writes nothing", async () => {
    const user = await market.createUser();
    const { ctx } = market.service;
    const { reply } = await ctx.db.transaction().execute(async (tx) => {
      await anonymizeAccount(ctx, tx, await lockAccountForClosing(tx, user.userId));
      const reply = sendImport(user, jsonLines({ ...haiku, id: "rain" }));
      await waitForBlockedStatements(market);
      return { reply };
    });
    assertError(await reply, 401, "INVALID_API_KEY");
    const left = "select author_id from products union all select author_id from imported_names";
    const { rows } = await market.query(`select from (${left}) l where author_id = $1`, [user.userId]);
    assert.equal(rows.length, 0);
  });
});

suite("POST /products/import: a zip", () => {
  const text = file(front);

  test("no zip, or a part of one: refused", async () => {
    const whole = await zipOf({ "a.md": text });
    for (const bytes of ["PK", "not a zip", whole.slice(0, -30), whole.slice(20)])
      assertError(await sendImport(seller, bytes, { type: ZIP }), 400, "INVALID_REQUEST", "body");
  });

  test("one damaged byte, anywhere: refused", async () => {
    const user = await market.createUser();
    const whole = await zipOf({ "a.md": text });
    for (let at = 0; at < whole.length; at += isFullSize ? 3 : 17) {
      const damaged = whole.slice();
      damaged[at] = damaged[at]! ^ 0xff;
      const { status } = await sendImport(user, damaged, { type: ZIP, query: "?dryRun=true" });
      // A damaged byte in a time or version field does no harm.
      assert.ok(status === 200 || status === 400, `${at}: ${status}`);
    }
    const stored = Buffer.from(await zipOf({ "a.md": text }, false));
    stored.write("tipic", stored.indexOf("topic"));
    const reply = await sendImport(user, new Uint8Array(stored), { type: ZIP });
    assert.match(assertError(reply, 400, "INVALID_REQUEST", "body").reason, /is damaged: a\.md/);
    assert.equal(await countOf(user), 0);
  });

  test("unpacks to more than the limit: refused before unpacking", async () => {
    const bomb = await zipOf({ "a.md": file(front, "x".repeat(30 * 1024 * 1024)) });
    assert.ok(bomb.length < 100_000);
    assert.match(
      assertError(await sendImport(seller, bomb, { type: ZIP }), 400, "INVALID_REQUEST", "body").reason,
      /unpacks/,
    );
    const large = await zipOf({ "a.md": file(front, "x".repeat(5 * 1024 * 1024)) });
    assert.match(
      assertError(await sendImport(seller, large, { type: ZIP }), 400, "INVALID_REQUEST", "body").reason,
      /larger than/,
    );
  });

  test("wrong sizes: refused", async () => {
    const bomb = Buffer.from(await zipOf({ "a.md": file(front, "x".repeat(3_000_000)) }));
    const directory = bomb.indexOf(Buffer.from("PK\u0001\u0002"));
    bomb.writeUInt32LE(1_000, directory + 24);
    assertError(
      await sendImport(seller, new Uint8Array(bomb), { type: ZIP }),
      400,
      "INVALID_REQUEST",
      "body",
    );
  });

  test("paths that lead out of it: refused; a long name is shortened in the message", async () => {
    const zip = Buffer.from(await zipOf({ "aaaaaaa.md": text }));
    const evil = Buffer.from(zip.toString("latin1").replaceAll("aaaaaaa.md", "../../../a.md"), "latin1");
    assertError(
      await sendImport(seller, new Uint8Array(evil), { type: ZIP }),
      400,
      "INVALID_REQUEST",
      "body",
    );
    const long = await zipOf({ [`${"n".repeat(5_000)}.md`]: "no front matter" });
    assert.ok((await sendImport(seller, long, { type: ZIP })).text.length < 2_000);
  });
});
