import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { after, before, suite, test } from "node:test";
import { buyProduct, createDraft, createProduct } from "../../../test/factories.ts";
import { inFullRun, oneOf } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { becomes } from "../../../test/until.ts";
import { picture, send, sendFile, sendImage, uploadFile } from "../../../test/uploads.ts";
import { toUuid } from "../../core/ids.ts";

const MIB = 1024 * 1024;

let market: Market;
let seller: Client;
before(async () => {
  market = await openMarket();
  seller = await market.createUser();
});
after(() => market.close());

const detail = async (reader: Client, productId: string) => {
  const reply = await reader.get(`/v1/products/${productId}`);
  assert.equal(reply.status, 200, reply.text);
  return reply.body.data;
};
const namesFor = async (reader: Client, productId: string) =>
  (await detail(reader, productId)).files.map(({ name }: { name: string }) => name);
const textOf = async (url: string) => (await fetch(url)).text();
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
const eventsOf = async (client: Client, type: string) =>
  (await client.get(`/v1/events?type=${type}&limit=100`)).body.data;
/** Files in the folder of unfinished uploads. */
const unfinishedUploads = async () => readdir(await market.service.ctx.integrations.storage.incoming());

suite("the files of a product", () => {
  test("visible to their author and buyers only", async () => {
    const productId = await createDraft(seller);
    const file = await uploadFile(seller, productId, { name: "guide.md", bytes: "# How\n" });
    await seller.post(`/v1/products/${productId}/publish`);
    const [buyer, stranger] = [await market.createUser(), await market.createUser()];
    const admin = await market.createSession((await market.createUser({ role: "admin" })).userId, {
      secondFactor: true,
    });
    assert.equal((await detail(buyer, productId)).files, null);
    await buyProduct(buyer, productId);
    for (const reader of [seller, buyer, admin]) {
      const [one] = (await detail(reader, productId)).files;
      const { url, ...rest } = one;
      assert.deepEqual(rest, {
        id: file.id,
        name: "guide.md",
        size: 6,
        type: "text/markdown",
        sha256: sha256("# How\n"),
      });
      assert.equal(await textOf(url), "# How\n");
    }
    assert.equal((await detail(stranger, productId)).files, null);
  });

  test("of a draft: changed in place; of a published product: a change makes a new version", async () => {
    const productId = await createDraft(seller);
    assert.equal((await uploadFile(seller, productId, { name: "a.md" })).version, "1.0.0");
    await seller.post(`/v1/products/${productId}/publish`);
    const added = await uploadFile(seller, productId, { name: "b.md", fields: { changelog: "With b." } });
    assert.equal(added.version, "1.1.0");
    assert.equal((await detail(seller, productId)).changelog, "With b.");
    const removed = await seller.delete(`/v1/products/${productId}/files/${added.id}`);
    assert.deepEqual(removed.body.data, { id: added.id, version: "1.2.0" });
    const { rows } = await market.query(
      `select v.version, jsonb_path_query_array(files, '$[*].name') as names from product_versions v
         join products p on p.id = v.product_id where p.author_id = $1 order by v.product_id desc, numbers`,
      [seller.userId],
    );
    assert.deepEqual(rows.slice(0, 3), [
      { version: "1.0.0", names: ["a.md"] },
      { version: "1.1.0", names: ["a.md", "b.md"] },
      { version: "1.2.0", names: ["a.md"] },
    ]);
  });

  test("the content changes: the files stay with the version", async () => {
    const productId = await createProduct(seller);
    await uploadFile(seller, productId);
    await seller.patch(`/v1/products/${productId}`, {
      content: "Another {{topic}} in {{language=English}}.",
    });
    const { version, files } = await detail(seller, productId);
    assert.deepEqual([version, files.length], ["1.2.0", 1]);
  });

  test("of an older version: listed with it, for its readers", async () => {
    const productId = await createProduct(seller);
    const { id } = await uploadFile(seller, productId, { name: "old.md", bytes: "# Old\n" });
    const buyer = await market.createUser();
    await buyProduct(buyer, productId);
    await seller.delete(`/v1/products/${productId}/files/${id}`);
    assert.deepEqual(await namesFor(buyer, productId), []);
    for (const reader of [seller, buyer]) {
      const { files } = (await reader.get(`/v1/products/${productId}/versions/1.1.0`)).body.data;
      const [{ url, name }] = files;
      assert.deepEqual([files.length, name, await textOf(url)], [1, "old.md", "# Old\n"]);
    }
  });

  test("a buyer gets those of the bought major version", async () => {
    const productId = await createProduct(seller);
    const first = await uploadFile(seller, productId, { name: "one.md" });
    const buyer = await market.createUser();
    await buyProduct(buyer, productId);
    await seller.patch(`/v1/products/${productId}`, { version: "2.0.0", content: "Second edition." });
    await uploadFile(seller, productId, { name: "two.md" });
    await seller.delete(`/v1/products/${productId}/files/${first.id}`);
    assert.deepEqual(await namesFor(seller, productId), ["two.md"]);
    assert.deepEqual(await namesFor(buyer, productId), ["one.md"]);
    const [{ url }] = (await detail(buyer, productId)).files;
    assert.equal((await fetch(url)).status, 200);
    const [{ url: newer }] = (await detail(seller, productId)).files;
    assert.ok(newer);
  });

  test("a change: an event with names and digests; no change, no event", async () => {
    const author = await market.createUser();
    const productId = await createDraft(author);
    await uploadFile(author, productId, { name: "a.md", bytes: "A" });
    await uploadFile(author, productId, { name: "a.md", bytes: "A" });
    const events = await eventsOf(author, "product.updated");
    assert.deepEqual(
      events.map(({ data }: { data: { product: { changes: unknown } } }) => data.product.changes),
      [{ files: { old: [], new: [{ name: "a.md", sha256: sha256("A") }] } }],
    );
    const before = (await author.get(`/v1/products/${productId}`)).headers.get("etag");
    await uploadFile(author, productId, { name: "a.md", bytes: "A" });
    assert.equal((await author.get(`/v1/products/${productId}`)).headers.get("etag"), before);
    await uploadFile(author, productId, { name: "a.md", bytes: "B" });
    assert.notEqual((await author.get(`/v1/products/${productId}`)).headers.get("etag"), before);
  });

  test("the same name in any case: replaces the old file", async () => {
    const productId = await createDraft(seller);
    await uploadFile(seller, productId, { name: "Guide.md", bytes: "old" });
    await uploadFile(seller, productId, { name: "guide.MD", bytes: "new" });
    const { files } = await detail(seller, productId);
    assert.deepEqual(
      files.map(({ name }: { name: string }) => name),
      ["guide.MD"],
    );
    assert.equal(await textOf(files[0].url), "new");
  });

  test("the same bytes: stored once across accounts", async () => {
    const bytes = `shared ${Math.random()}`;
    const other = await market.createUser();
    await Promise.all([
      ...[1, 2, 3].map(async (n) =>
        uploadFile(seller, await createDraft(seller), { name: `${n}.md`, bytes }),
      ),
      uploadFile(other, await createDraft(other), { bytes }),
    ]);
    const { rows } = await market.query("select name from blobs where key = $1", [`files/${sha256(bytes)}`]);
    assert.equal(rows.length, 1);
    assert.deepEqual(await unfinishedUploads(), []);
  });

  test("thirty parallel uploads of two users: twenty succeed", async () => {
    const productId = await createDraft(seller);
    for (let n = 0; n < 12; n++) await uploadFile(seller, productId, { name: `${n}.md` });
    const replies = await Promise.all(
      Array.from({ length: 18 }, (_, n) => sendFile(seller, productId, { name: `more ${n}.md`, bytes: "x" })),
    );
    const refused = replies.filter(({ status }) => status !== 201);
    assert.equal(refused.length, 10);
    for (const reply of refused) assertError(reply, 422, "VALIDATION_ERROR", "file");
    assert.equal((await namesFor(seller, productId)).length, 20);
    assert.deepEqual(await unfinishedUploads(), []);
  });

  test("parallel changes: one version each, none lost", async () => {
    const productId = await createProduct(seller);
    const made = await Promise.all(
      Array.from({ length: 10 }, (_, n) => uploadFile(seller, productId, { name: `${n}.md` })),
    );
    assert.equal(new Set(made.map(({ version }) => version)).size, 10);
    const { version, files } = await detail(seller, productId);
    assert.deepEqual([version, files.length], ["1.10.0", 10]);
  });

  test("a change by an administrator: in the audit log", async () => {
    const productId = await createProduct(seller);
    const admin = await market.createSession((await market.createUser({ role: "admin" })).userId, {
      secondFactor: true,
    });
    const file = await uploadFile(admin, productId);
    await admin.delete(`/v1/products/${productId}/files/${file.id}`);
    const { rows } = await market.query("select action from audit_log where actor_id = $1", [admin.userId]);
    assert.deepEqual(
      rows.map(({ action }) => action),
      ["product.updated", "product.updated"],
    );
  });

  test("an unknown id, or a file of another product: 404", async () => {
    const [one, other] = [await createDraft(seller), await createDraft(seller)];
    const file = await uploadFile(seller, one);
    for (const id of ["nothing", file.id.replace("file_", "img_"), file.id])
      assertError(await seller.delete(`/v1/products/${other}/files/${id}`), 404, "FILE_NOT_FOUND");
  });

  test("PATCH with the ETag of an old read: succeeds, although its links have changed", async () => {
    const productId = await createDraft(seller);
    await uploadFile(seller, productId);
    const read = await seller.get(`/v1/products/${productId}`);
    const etag = read.headers.get("etag")!;
    market.clock.forward(40 * 60_000);
    const again = await seller.get(`/v1/products/${productId}`, { "if-none-match": etag });
    assert.equal(again.status, 200, "its links have ended");
    assert.notEqual(again.body.data.files[0].url, read.body.data.files[0].url);
    const changed = await seller.patch(`/v1/products/${productId}`, { title: "Newer" }, { "if-match": etag });
    assert.equal(changed.status, 200, changed.text);
    const late = await seller.patch(`/v1/products/${productId}`, { title: "Newest" }, { "if-match": etag });
    assertError(late, 412, "PRECONDITION_FAILED");
  });
});

suite("an upload", () => {
  test("repeated with its Idempotency-Key and another boundary: one file", async () => {
    const productId = await createProduct(seller);
    const headers = { "idempotency-key": "file one" };
    const first = await sendFile(seller, productId, { bytes: "x", headers });
    const again = await sendFile(seller, productId, { bytes: "x", headers });
    assert.equal(again.headers.get("idempotent-replayed"), "true");
    assert.deepEqual(again.body, first.body);
    const other = await sendFile(seller, productId, { bytes: "y", headers });
    assertError(other, 422, "IDEMPOTENCY_KEY_REUSED");
    assert.equal((await detail(seller, productId)).version, "1.1.0");
    assert.deepEqual(await unfinishedUploads(), []);
  });

  test("an unauthorized caller: refused before the body is read", async () => {
    const productId = await createProduct(seller);
    const stranger = await market.createUser();
    const reader = await market.createUser({ permissions: ["products:read"] });
    const bytes = "x".repeat(MIB);
    assertError(await sendFile(market.as(null), productId, { bytes }), 401, "INVALID_API_KEY");
    assertError(await sendFile(reader, productId, { bytes }), 403, "UNAUTHORIZED");
    assertError(await sendFile(stranger, productId, { bytes }), 403, "UNAUTHORIZED");
    assertError(await sendFile(stranger, await createDraft(seller), { bytes }), 404, "PRODUCT_NOT_FOUND");
    assertError(await sendFile(stranger, "nothing", { bytes }), 404, "PRODUCT_NOT_FOUND");
    assert.deepEqual(await unfinishedUploads(), []);
  });

  const limits = [
    ["image", "images", 10 * MIB],
    ["file", "files", 50 * MIB],
  ] as const;
  for (const [what, path, limit] of oneOf(limits)) {
    test(`a ${what} over the limit: 413 with the limit, with or without Content-Length`, async () => {
      const productId = await createDraft(seller);
      const sent = { name: "a.txt", bytes: new Uint8Array(limit + 1).fill(65) };
      const announced = await send(seller, `/v1/products/${productId}/${path}`, sent);
      assert.equal(assertError(announced, 413, "PAYLOAD_TOO_LARGE", "file").limitBytes, limit);
      const form = new FormData();
      form.set("file", new File([sent.bytes], "a.txt"));
      const { headers, body } = new Response(form);
      const silent = await seller.request("POST", `/v1/products/${productId}/${path}`, {
        headers,
        body,
        duplex: "half",
      } as RequestInit);
      assert.equal(assertError(silent, 413, "PAYLOAD_TOO_LARGE", "file").limitBytes, limit);
      assert.deepEqual(await unfinishedUploads(), []);
    });
  }

  test("exactly at the limit: accepted", inFullRun, async () => {
    const productId = await createDraft(seller);
    const bytes = new Uint8Array(50 * MIB).fill(65);
    assert.equal((await uploadFile(seller, productId, { name: "a.txt", bytes })).size, 50 * MIB);
  });

  test("a version over 200 MiB: refused", async () => {
    const productId = await createDraft(seller);
    const { id } = await uploadFile(seller, productId);
    const almost = 200 * MIB - 10;
    await market.query(
      "update product_versions set files = jsonb_set(files, '{0,size}', to_jsonb($1::int)) where files @> $2",
      [almost, JSON.stringify([{ id: toUuid("file", id) }])],
    );
    await uploadFile(seller, productId, { name: "1.txt", bytes: "0123456789" });
    const reply = await sendFile(seller, productId, { name: "2.txt", bytes: "x" });
    assertError(reply, 422, "VALIDATION_ERROR", "file");
  });

  for (const [words, body, type, status, field] of [
    ["no multipart", "{}", "application/json", 415, undefined],
    ["no boundary", "x", "multipart/form-data", 415, undefined],
    ["an empty boundary", "x", "multipart/form-data; boundary=", 400, "body"],
    ["no part", "--x--\r\n", "multipart/form-data; boundary=x", 400, "file"],
    [
      "no end",
      '--x\r\nContent-Disposition: form-data; name="file"; filename="a.md"\r\n\r\nabc',
      "multipart/form-data; boundary=x",
      400,
      "body",
    ],
    ["garbage", "\0\r\n\r\n--x\r\n\r\n\0", "multipart/form-data; boundary=x", 400, "body"],
    [
      "text in the place of the file",
      '--x\r\nContent-Disposition: form-data; name="file"\r\n\r\nabc\r\n--x--\r\n',
      "multipart/form-data; boundary=x",
      400,
      "file",
    ],
    [
      "another name",
      '--x\r\nContent-Disposition: form-data; name="data"; filename="a.md"\r\n\r\nabc\r\n--x--\r\n',
      "multipart/form-data; boundary=x",
      400,
      "data",
    ],
    ["no body", "", "multipart/form-data; boundary=x", 400, "body"],
  ] as const) {
    test(`${words}: refused`, async () => {
      const productId = await createDraft(seller);
      const reply = await seller.request("POST", `/v1/products/${productId}/files`, {
        body,
        headers: { "content-type": type },
      });
      if (status === 415) assertError(reply, 415, "UNSUPPORTED_MEDIA_TYPE");
      else assertError(reply, 400, "INVALID_REQUEST", field);
      assert.deepEqual(await unfinishedUploads(), []);
    });
  }

  test("two files, an unknown field or a field that is too long: refused, named", async () => {
    const productId = await createDraft(seller);
    const path = `/v1/products/${productId}/files`;
    const two = new FormData();
    for (const name of ["a.md", "b.md"]) two.append("file", new File(["x"], name));
    assertError(await seller.request("POST", path, { body: two }), 400, "INVALID_REQUEST", "file");
    for (const [field, value] of [
      ["nonsense", "1"],
      ["__proto__", "1"],
      ["changelog", "x".repeat(5_001)],
      ["changelog", "x".repeat(100_000)],
    ] as const)
      assertError(
        await sendFile(seller, productId, { bytes: "x", fields: { [field]: value } }),
        400,
        "INVALID_REQUEST",
        field,
      );
    assertError(await send(seller, `${path}?nonsense=1`, { bytes: "x" }), 400, "INVALID_REQUEST", "nonsense");
    assert.deepEqual(await namesFor(seller, productId), []);
    assert.deepEqual(await unfinishedUploads(), []);
  });

  /** Sends the beginning of an upload only. */
  function begin(origin: string, client: Client, productId: string): Socket {
    const { hostname, port } = new URL(origin);
    const socket = connect(Number(port), hostname);
    socket.write(
      [
        `POST /v1/products/${productId}/files HTTP/1.1`,
        "Host: stoa",
        `Authorization: Bearer ${client.key}`,
        "Content-Type: multipart/form-data; boundary=x",
        "Content-Length: 100000",
        "",
        "--x",
        'Content-Disposition: form-data; name="file"; filename="a.md"',
        "",
        "abc",
      ].join("\r\n"),
    );
    return socket;
  }

  test("a stalled body: times out, stores nothing", async () => {
    const hasty = await openMarket({ requestDeadlines: { upload: { idleMs: 50, totalMs: 30_000 } } });
    const client = await hasty.createUser();
    const socket = begin(hasty.origin, client, await createDraft(client));
    const answer = await new Promise<string>((resolve) =>
      socket.once("data", (data) => resolve(String(data))),
    );
    assert.match(answer, /^HTTP\/1.1 400 /);
    assert.match(answer, /body: stood still for 0.05 seconds/);
    socket.destroy();
    assert.deepEqual(await readdir(await hasty.service.ctx.integrations.storage.incoming()), []);
    await hasty.close();
  });

  const untilUnfinished = (count: number) =>
    becomes(
      async () => (await unfinishedUploads()).length,
      (left) => left === count,
    );

  test("a client that disconnects: stores nothing", async () => {
    const productId = await createDraft(seller);
    const open = Array.from({ length: 10 }, () => begin(market.origin, seller, productId));
    await untilUnfinished(10);
    for (const socket of open) socket.destroy();
    await untilUnfinished(0);
    assert.deepEqual(await namesFor(seller, productId), []);
    assert.deepEqual(
      market.logs.filter((line) => line.includes("unexpected error")),
      [],
    );
  });

  test("over twenty of one account at once: refused; other accounts are not", async () => {
    const productId = await createDraft(seller);
    const other = await market.createUser();
    const open = Array.from({ length: 20 }, () => begin(market.origin, seller, productId));
    await untilUnfinished(20);
    const reply = await sendFile(seller, productId, { bytes: "x" });
    assertError(reply, 429, "RATE_LIMIT_EXCEEDED");
    assert.equal(reply.headers.get("retry-after"), "1");
    await uploadFile(other, await createDraft(other));
    for (const socket of open) socket.destroy();
    await untilUnfinished(0);
    await uploadFile(seller, productId);
  });
});

suite("file names", () => {
  for (const [sent, stored] of [
    ["guide.md", "guide.md"],
    ["../../../etc/passwd.md", "passwd.md"],
    ["C:\\Users\\me\\notes.md", "notes.md"],
    ["..md..md", "md..md"],
    ["  .hidden.md. ", "hidden.md"],
    ["a\u202egpj.md", "agpj.md"],
    ["zero\u200bwidth\ufeff.md", "zerowidth.md"],
    ["what?<is>:this|*.md", "what__is__this__.md"],
    ["俳句 – crème brûlée 🎋.md", "俳句 – crème brûlée 🎋.md"],
    ["e\u0301.md", "é.md"],
  ]) {
    test(`${JSON.stringify(sent)} is stored as ${stored}`, async () => {
      const productId = await createDraft(seller);
      assert.equal((await uploadFile(seller, productId, { name: sent! })).name, stored);
    });
  }

  for (const name of ["con.md", "NUL", "lpt1.txt", `${"x".repeat(118)}.md`, "..", "/", "\u202e"]) {
    test(`${JSON.stringify(name.slice(0, 20))}: refused`, async () => {
      const reply = await sendFile(seller, await createDraft(seller), { name, bytes: "x" });
      assertError(reply, 400, "INVALID_REQUEST", "file");
    });
  }
});

test("images and files: each list has its own", async () => {
  const productId = await createDraft(seller);
  await sendImage(seller, productId, { bytes: await picture() });
  const { files, images } = await detail(seller, productId);
  assert.deepEqual([files.length, images.length], [0, 1]);
});
