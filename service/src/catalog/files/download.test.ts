import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import fc from "fast-check";
import { buyProduct, createDraft, createProduct, refundEverything } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { type S3Server, startS3Server } from "../../../test/s3-server.ts";
import { picture, sendFile, sendImage, uploadFile } from "../../../test/uploads.ts";
import { removeDemo } from "../../backoffice/demo/demo.ts";
import { DAY_MS } from "../../core/dates.ts";
import { newUuid, toId, toUuid } from "../../core/ids.ts";
import { sweepBlobs } from "./blob-sweep.ts";
import { parseRange } from "./download.ts";

const MINUTE_MS = 60_000;

let market: Market;
let seller: Client;
let nobody: Client;
before(async () => {
  market = await openMarket();
  seller = await market.createUser();
  nobody = market.as(null);
});
after(() => market.close());

async function hasLink(sent: Parameters<typeof uploadFile>[2] = {}) {
  const productId = await createProduct(seller);
  const file = await uploadFile(seller, productId, sent);
  const buyer = await market.createUser();
  const orderId = await buyProduct(buyer, productId);
  const [{ url }] = (await buyer.get(`/v1/products/${productId}`)).body.data.files;
  return { productId, orderId, buyer, file, url: url as string };
}

suite("the signed link of a file", () => {
  test("a browser: downloads the file as attachment and runs nothing", async () => {
    const { url } = await hasLink({ name: 'Crème "brûlée" 俳句.md', bytes: "hello" });
    const { headers, text, status } = await nobody.get(url);
    assert.deepEqual([status, text], [200, "hello"]);
    assert.equal(
      headers.get("content-disposition"),
      "attachment; filename=\"Creme _brulee_ .md\"; filename*=UTF-8''Cr%C3%A8me%20_br%C3%BBl%C3%A9e_%20%E4%BF%B3%E5%8F%A5.md",
    );
    assert.equal(headers.get("content-type"), "text/markdown; charset=utf-8");
    assert.equal(headers.get("x-content-type-options"), "nosniff");
    assert.equal(headers.get("content-security-policy"), "sandbox; default-src 'none'");
    assert.equal(headers.get("cache-control"), "private, no-store");
    assert.equal(headers.get("content-length"), "5");
  });

  test("missing or changed signature, or another reader's: refused", async () => {
    const { url, productId, file } = await hasLink();
    const other = toId("usr", (await market.createUser()).userId);
    const { productId: elsewhere, file: another } = await hasLink();
    for (const wrong of [
      url.split("?")[0]!,
      url.replace(/expires=\d/, "expires=9"),
      `${url}x`,
      url.replace(/usr_\w+/, other),
      url.replace(file.id, another.id),
      url.replace(productId, elsewhere),
    ])
      assertError(await nobody.get(wrong), 403, "UNAUTHORIZED");
  });

  test("expires after 15 to 30 minutes", async () => {
    const { url } = await hasLink();
    market.clock.forward(15 * MINUTE_MS - 1_000);
    assert.equal((await nobody.get(url)).status, 200);
    market.clock.forward(15 * MINUTE_MS + 1_000);
    assertError(await nobody.get(url), 403, "UNAUTHORIZED");
  });

  test("a product suspended as harmful: refused", async () => {
    const { url, productId } = await hasLink();
    const admin = await market.createUser({ role: "admin" });
    const session = await market.createSession(admin.userId, { secondFactor: true });
    const suspend = (reasonCode: string) =>
      session.post(`/v1/admin/products/${productId}/suspend`, { reasonCode });
    assert.equal((await suspend("malicious")).status, 200);
    assertError(await nobody.get(url), 409, "PRODUCT_UNAVAILABLE");
  });

  test("entitlement revoked, account closed or banned: refused at once", async () => {
    const ends: ((one: Awaited<ReturnType<typeof hasLink>>) => Promise<unknown>)[] = [
      ({ buyer }) => refundEverything(market, buyer),
      ({ buyer }) => market.query("update users set closed_at = created_at where id = $1", [buyer.userId]),
      ({ buyer }) => market.query("update users set banned_at = created_at where id = $1", [buyer.userId]),
    ];
    for (const end of ends) {
      const one = await hasLink();
      assert.equal((await nobody.get(one.url)).status, 200);
      await end(one);
      assertError(await nobody.get(one.url), 403, "UNAUTHORIZED");
    }
  });

  test("product deleted: the author's link ends, a buyer's does not", async () => {
    const { url, productId } = await hasLink();
    const [{ url: own }] = (await seller.get(`/v1/products/${productId}`)).body.data.files;
    assert.equal((await nobody.get(own)).status, 200);
    await seller.delete(`/v1/products/${productId}`);
    assertError(await nobody.get(own), 403, "UNAUTHORIZED");
    assert.equal((await nobody.get(url)).status, 200);
  });

  test("a file of another major version than the bought one: refused", async () => {
    const { productId, buyer } = await hasLink();
    await seller.patch(`/v1/products/${productId}`, { version: "2.0.0", content: "Second." });
    const newer = await uploadFile(seller, productId, { name: "new.md" });
    const { ctx } = market.service;
    const path = `/v1/products/${productId}/files/${newer.id}/download/${toId("usr", buyer.userId)}`;
    const signed = (to: string) => ctx.links.sign(to, new Date(ctx.now().getTime() + MINUTE_MS));
    assertError(await nobody.get(signed(path)), 403, "UNAUTHORIZED");
    const unknown = path.replace(newer.id, toId("file", newUuid(ctx.now())));
    assertError(await nobody.get(signed(unknown)), 404, "FILE_NOT_FOUND");
  });

  test("the first download: counts as first use", async () => {
    const { url, orderId } = await hasLink();
    const usedAt = async () => {
      const found = "select used_at from entitlements where order_id = $1";
      return (await market.query(found, [toUuid("ord", orderId)])).rows[0].used_at;
    };
    await market.query("update entitlements set used_at = null where order_id = $1", [
      toUuid("ord", orderId),
    ]);
    await nobody.get(url);
    assert.deepEqual(await usedAt(), market.clock.now);
  });

  test("HEAD, a range past the end, or missing bytes: no use", async () => {
    const { url, orderId, file } = await hasLink({ bytes: "0123456789" });
    const order = [toUuid("ord", orderId)];
    await market.query("update entitlements set used_at = null where order_id = $1", order);
    assert.equal((await nobody.request("HEAD", url)).headers.get("content-length"), "10");
    assert.equal((await nobody.get(url, { range: "bytes=10-" })).status, 416);
    await market.query("update blobs set name = $2 || right(name, 37) where key = $1", [
      `files/${file.sha256}`,
      "0".repeat(64),
    ]);
    assertError(await nobody.get(url), 503, "SERVICE_UNAVAILABLE");
    const { rows } = await market.query("select used_at from entitlements where order_id = $1", order);
    assert.equal(rows[0].used_at, null);
  });

  test("a range request: 206 with that part", async () => {
    const { url } = await hasLink({ bytes: "0123456789" });
    for (const [range, status, text, contentRange] of [
      ["bytes=2-4", 206, "234", "bytes 2-4/10"],
      ["bytes=7-", 206, "789", "bytes 7-9/10"],
      ["bytes=-3", 206, "789", "bytes 7-9/10"],
      ["bytes=0-999", 206, "0123456789", "bytes 0-9/10"],
      ["bytes=10-", 416, "", "bytes */10"],
      ["bytes=0-1,3-4", 200, "0123456789", null],
      ["lines=1-2", 200, "0123456789", null],
    ] as const) {
      const reply = await nobody.get(url, { range });
      assert.deepEqual(
        [reply.status, reply.text, reply.headers.get("content-range")],
        [status, text, contentRange],
        range,
      );
    }
  });
});

test("random range headers: the answer lies within the file", () => {
  const part = fc.option(fc.nat(20), { nil: "" });
  fc.assert(
    fc.property(part, part, fc.integer({ min: 1, max: 15 }), (first, last, size) => {
      const range = parseRange(`bytes=${first}-${last}`, size);
      if (range) assert.ok(0 <= range.start && range.start <= range.end && range.end < size);
    }),
  );
});

suite("unreferenced blobs", () => {
  const keys = async () =>
    (await market.query("select key from blobs order by key")).rows.map(({ key }) => key);
  const sweep = () => sweepBlobs(market.service.ctx);

  test("deleted after a day; blobs of any version or image stay", async () => {
    await market.query("delete from blobs");
    const productId = await createProduct(seller);
    const once = await uploadFile(seller, productId, { name: "a.md", bytes: "kept by an old version" });
    await seller.delete(`/v1/products/${productId}/files/${once.id}`);
    const draft = await createDraft(seller);
    const gone = await uploadFile(seller, draft, { name: "b.md", bytes: "of a draft" });
    await seller.delete(`/v1/products/${draft}/files/${gone.id}`);
    const image = await sendImage(seller, draft, { bytes: await picture({ red: 7 }) });
    const hidden = await sendImage(seller, draft, { bytes: await picture({ red: 77 }) });
    await seller.delete(`/v1/products/${draft}/images/${hidden.body.data.id}`);
    await sweep();
    assert.equal((await keys()).length, 8, "they were wanted today");
    market.clock.forward(DAY_MS + 1);
    await sweep();
    const left = await keys();
    assert.equal(left.length, 4);
    assert.ok(left.includes(`files/${once.sha256}`));
    assert.equal((await fetch(image.body.data.url)).status, 200);
  });

  test("uploaded again while they are deleted: stored under another name", async () => {
    const draft = await createDraft(seller);
    const bytes = "comes and goes";
    const first = await uploadFile(seller, draft, { bytes });
    await seller.delete(`/v1/products/${draft}/files/${first.id}`);
    market.clock.forward(DAY_MS + 1);
    await Promise.all([
      sweep(),
      ...Array.from({ length: 10 }, (_, n) => sendFile(seller, draft, { name: `${n}.md`, bytes })),
      sweep(),
    ]);
    await sweep();
    for (const { url } of (await seller.get(`/v1/products/${draft}`)).body.data.files)
      assert.equal((await nobody.get(url)).text, bytes);
  });

  test("more than a batch: deleted in one job run", async () => {
    await market.query(`insert into blobs (key, name, size, touched_at)
      select 'files/' || n, repeat('0', 64) || '-' || gen_random_uuid(), 1, '2026-01-01' from generate_series(1, 510) as n`);
    await sweep();
    assert.equal((await keys()).filter((key) => key.startsWith("gone/")).length, 0);
  });

  test("of the deleted demo: deleted", async () => {
    const demo = await market.createUser();
    const productId = await createProduct(demo);
    const file = await uploadFile(demo, productId, { bytes: "of the demo" });
    await sendImage(demo, productId, { bytes: await picture({ red: 99 }) });
    await market.query("update users set demo = true where id = $1", [demo.userId]);
    await removeDemo(market.service.ctx);
    market.clock.forward(DAY_MS + 1);
    await sweep();
    assert.ok(!(await keys()).includes(`files/${file.sha256}`));
  });
});

suite("with an S3 bucket", () => {
  let s3: S3Server;
  let bucketed: Market;
  before(async () => {
    s3 = await startS3Server();
    bucketed = await openMarket({ config: { s3Url: s3.url } });
  });
  after(async () => {
    await bucketed.close();
    await s3.close();
  });

  test("files and images: stored, served and deleted as on disk", async () => {
    const author = await bucketed.createUser();
    const productId = await createDraft(author);
    const file = await uploadFile(author, productId, { bytes: "0123456789" });
    const image = await sendImage(author, productId, { bytes: await picture() });
    assert.ok([...s3.objects.keys()].some((key) => key.startsWith(`shop/${file.sha256}-`)));
    assert.equal((await nobody.get(file.url)).text, "0123456789");
    assert.equal((await nobody.get(file.url, { range: "bytes=3-5" })).text, "345");
    assert.equal((await fetch(image.body.data.url)).headers.get("content-type"), "image/webp");
    await author.delete(`/v1/products/${productId}/files/${file.id}`);
    await author.delete(`/v1/products/${productId}/images/${image.body.data.id}`);
    bucketed.clock.forward(DAY_MS + 1);
    await sweepBlobs(bucketed.service.ctx);
    assert.equal(s3.objects.size, 0);
  });

  test("the bucket is down: uploads and downloads are 503 with Retry-After", async () => {
    const author = await bucketed.createUser();
    const productId = await createDraft(author);
    const file = await uploadFile(author, productId);
    s3.fails.times = 1_000;
    const upload = await sendFile(author, productId, { name: "b.md", bytes: "x" });
    assertError(upload, 503, "SERVICE_UNAVAILABLE");
    assert.equal(upload.headers.get("retry-after"), "5");
    assertError(await nobody.get(file.url), 503, "SERVICE_UNAVAILABLE");
    s3.fails.times = 0;
    assert.equal((await nobody.get(file.url)).status, 200);
    assert.equal((await author.get(`/v1/products/${productId}`)).body.data.files.length, 1);
  });
});
