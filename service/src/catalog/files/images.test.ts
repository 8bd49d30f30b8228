import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { crc32, deflateSync } from "node:zlib";
import sharp from "sharp";
import { createDraft, createProduct } from "../../../test/factories.ts";
import { isFullSize } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { picture, sendImage } from "../../../test/uploads.ts";

let market: Market;
let seller: Client;
before(async () => {
  market = await openMarket();
  seller = await market.createUser();
});
after(() => market.close());

type Bytes = Uint8Array<ArrayBuffer>;

async function hasImage(bytes: Bytes, productId?: string) {
  const reply = await sendImage(seller, productId ?? (await createDraft(seller)), { bytes });
  assert.equal(reply.status, 201, reply.text);
  return reply.body.data;
}
const bytesOf = async (url: string) => Buffer.from(await (await fetch(url)).arrayBuffer());
const whyRefused = async (bytes: Bytes | string) => {
  const reply = await sendImage(seller, await createDraft(seller), { bytes });
  return assertError(reply, 400, "INVALID_REQUEST", "file").reason as string;
};
const flat = (width: number, height: number) =>
  sharp({ create: { width, height, channels: 3, background: { r: 255, g: 0, b: 0 } } });

suite("an image", () => {
  test("becomes WebP in three widths, none wider than the original", async () => {
    const pictures = [
      [
        2_000,
        1_000,
        [
          [320, 160],
          [640, 320],
          [1280, 640],
        ],
      ],
      [
        500,
        400,
        [
          [320, 256],
          [500, 400],
          [500, 400],
        ],
      ],
      [
        100,
        50,
        [
          [100, 50],
          [100, 50],
          [100, 50],
        ],
      ],
      [
        2_000,
        16_000,
        [
          [320, 2560],
          [480, 3840],
          [480, 3840],
        ],
      ],
    ] as const;
    // The last one, of 32 megapixels, takes half of the time.
    for (const [width, height, expected] of isFullSize ? pictures : pictures.slice(0, -1)) {
      const { sizes, url, ...image } = await hasImage(await picture({ width, height }));
      const colors = await Promise.all(
        sizes.map(async (size: { url: string }) => {
          const { format, ...meta } = await sharp(await bytesOf(size.url)).metadata();
          assert.equal(format, "webp");
          return [meta.width, meta.height];
        }),
      );
      assert.deepEqual(colors, expected);
      assert.deepEqual(
        sizes.map((size: { width: number }) => size.width),
        expected.map(([w]) => w),
      );
      assert.deepEqual([image.width, image.height], expected[2]);
      assert.equal(url, sizes[2].url);
    }
  });

  test("is immutable for caches, answers 304 by ETag, and can be embedded by any site", async () => {
    const { url } = await hasImage(await picture());
    const reply = await fetch(url);
    const { headers } = reply;
    assert.equal(headers.get("content-type"), "image/webp");
    assert.equal(headers.get("cache-control"), "public, max-age=31536000, immutable");
    assert.equal(headers.get("x-content-type-options"), "nosniff");
    assert.equal(headers.get("cross-origin-resource-policy"), "cross-origin");
    const again = await fetch(url, { headers: { "if-none-match": headers.get("etag")! } });
    assert.equal(again.status, 304);
    const other = await fetch(url.replace(/-\d+\.webp$/, "-320.webp"));
    assert.notEqual(other.headers.get("etag"), headers.get("etag"), "another width is another picture");
    const head = await fetch(url, { method: "HEAD" });
    assert.equal(head.headers.get("content-length"), String((await reply.arrayBuffer()).byteLength));
  });

  test("loses all metadata of the camera, the location too", async () => {
    const exif = {
      IFD0: { Copyright: "SECRETMARK" },
      IFD3: { GPSLatitude: "52/1 30/1 0/1", GPSLatitudeRef: "N" },
    };
    const bytes = new Uint8Array(await flat(64, 64).jpeg().withExif(exif).toBuffer());
    assert.ok(Buffer.from(bytes).includes("SECRETMARK"));
    for (const { url } of (await hasImage(bytes)).sizes) {
      const image = await bytesOf(url);
      const { exif: none, icc, xmp, iptc } = await sharp(image).metadata();
      assert.deepEqual([none, icc, xmp, iptc], [undefined, undefined, undefined, undefined]);
      assert.ok(!image.includes("SECRETMARK"));
    }
  });

  test("is rotated as its orientation tag says", async () => {
    const lying = new Uint8Array(await flat(60, 30).jpeg().withMetadata({ orientation: 6 }).toBuffer());
    const { width, height } = await hasImage(lying);
    assert.deepEqual([width, height], [30, 60]);
  });

  test("keeps its colors, in any color space", async () => {
    const wide = new Uint8Array(await flat(16, 16).withIccProfile("p3").png().toBuffer());
    const raw = await sharp(wide, { ignoreIcc: true }).raw().toBuffer();
    assert.notDeepEqual(
      [...raw.subarray(0, 3)],
      [255, 0, 0],
      "written in the wide space, red is another triple",
    );
    const { url } = await hasImage(wide);
    const [red, green, blue] = await sharp(await bytesOf(url))
      .raw()
      .toBuffer();
    assert.ok(red! > 245 && green! < 12 && blue! < 12, `${red} ${green} ${blue}`);
  });

  test("animated: becomes its first frame", async () => {
    const frames = Buffer.concat([await flat(8, 8).raw().toBuffer(), Buffer.alloc(8 * 8 * 3)]);
    const raw = { width: 8, height: 16, channels: 3 as const, pageHeight: 8 };
    const bytes = new Uint8Array(await sharp(frames, { raw }).gif().toBuffer());
    const { url } = await hasImage(bytes);
    const { pages, height } = await sharp(await bytesOf(url)).metadata();
    assert.deepEqual([pages ?? 1, height], [1, 8]);
  });
});

suite("rejected as an image:", () => {
  test("HTML, SVG, PDF and TIFF, with any name", async () => {
    assert.match(await whyRefused("<svg xmlns='http://www.w3.org/2000/svg'/>"), /is no picture.*SVG is not/);
    assert.match(await whyRefused("%PDF-1.7"), /is a PDF/);
    assert.match(await whyRefused(new Uint8Array(await flat(8, 8).tiff().toBuffer())), /is a TIFF/);
    assert.match(await whyRefused(""), /is empty/);
  });

  test("a truncated image, or one with a valid start only", async () => {
    const noise = await sharp({
      create: {
        width: 300,
        height: 300,
        channels: 3,
        background: "red",
        noise: { type: "gaussian", mean: 128, sigma: 60 },
      },
    })
      .png()
      .toBuffer();
    assert.match(
      await whyRefused(new Uint8Array(noise.subarray(0, noise.length / 2))),
      /damaged, or cut off/,
    );
    assert.match(await whyRefused(new Uint8Array(Buffer.from("GIF89a and no more"))), /damaged, or cut off/);
  });

  test("a few bytes that would decode to gigabytes", async () => {
    const bytes = new Uint8Array(await flat(8_000, 5_001).png({ compressionLevel: 9 }).toBuffer());
    assert.ok(bytes.length < 300_000);
    assert.match(await whyRefused(bytes), /more than 40 megapixels/);
    // A PNG claims its size in its first bytes.
    const claim = Buffer.from(await flat(8, 8).png().toBuffer());
    claim.writeUInt32BE(100_000, 16);
    claim.writeUInt32BE(100_000, 20);
    assert.match(await whyRefused(new Uint8Array(claim)), /more than 40 megapixels|damaged/);
  });
});

test("accepted: compressed text chunks, without unpacking them", async () => {
  const chunk = (type: string, data: Buffer) => {
    const typed = Buffer.concat([Buffer.from(type, "latin1"), data]);
    const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    check.writeUInt32BE(crc32(typed));
    return Buffer.concat([length, typed, check]);
  };
  const plain = await flat(8, 8).png().toBuffer();
  const text = chunk(
    "zTXt",
    Buffer.concat([Buffer.from("a\0\0"), deflateSync(Buffer.alloc(20_000_000, "x"))]),
  );
  const at = plain.indexOf("IDAT") - 4;
  const bomb = Buffer.concat([plain.subarray(0, at), ...Array(10).fill(text), plain.subarray(at)]);
  const before = process.resourceUsage().maxRSS;
  const { width, height } = await hasImage(new Uint8Array(bomb));
  const kilobytes = process.resourceUsage().maxRSS - before;
  assert.deepEqual([width, height], [8, 8]);
  assert.ok(kilobytes < 200_000, `${kilobytes} KB`);
});

suite("the images of a product", () => {
  test("public, the first is the cover in lists; a change makes an event and no version", async () => {
    const author = await market.createUser();
    const stranger = await market.createUser();
    const productId = await createProduct(author, { title: "Illustrated" });
    const before = (await author.get(`/v1/products/${productId}`)).headers.get("etag");
    const one = await sendImage(author, productId, {
      bytes: await picture({ red: 1 }),
      fields: { alt: "One" },
    });
    const two = await sendImage(author, productId, { bytes: await picture({ red: 90 }) });
    const { data } = (await stranger.get(`/v1/products/${productId}`)).body;
    assert.deepEqual(data.images, [one.body.data.url, two.body.data.url]);
    assert.deepEqual(
      data.gallery.map(({ alt }: { alt: string }) => alt),
      ["One", ""],
    );
    assert.equal(data.version, "1.0.0");
    assert.notEqual((await author.get(`/v1/products/${productId}`)).headers.get("etag"), before);
    const coverOf = async () => {
      const cards = (await stranger.get("/v1/products?search=illustrated")).body.data;
      return cards.find(({ id }: { id: string }) => id === productId).image;
    };
    assert.equal(await coverOf(), one.body.data.sizes[1].url);
    assert.equal((await fetch(await coverOf())).status, 200);
    assert.equal((await author.delete(`/v1/products/${productId}/images/${one.body.data.id}`)).status, 200);
    assert.equal(await coverOf(), two.body.data.sizes[1].url);
    assert.equal((await fetch(one.body.data.url)).status, 404, "gone at once, though its bytes go later");
    await author.delete(`/v1/products/${productId}/images/${two.body.data.id}`);
    assert.equal(await coverOf(), null);
    const events = (await author.get("/v1/events?type=product.updated")).body.data;
    assert.equal(events.length, 4);
    assert.deepEqual(Object.keys(events[0].data.product.changes), ["images"]);
  });

  test("fifteen parallel uploads: ten succeed; the same image twice is one", async () => {
    const productId = await createDraft(seller);
    const pictures = await Promise.all(Array.from({ length: 15 }, (_, n) => picture({ red: n * 15 })));
    const replies = await Promise.all(pictures.map((bytes) => sendImage(seller, productId, { bytes })));
    const refused = replies.filter(({ status }) => status !== 201);
    assert.equal(refused.length, 5);
    for (const reply of refused) assertError(reply, 422, "VALIDATION_ERROR", "file");
    const accepted = replies.findIndex(({ status }) => status === 201);
    const again = await hasImage(pictures[accepted]!, productId);
    assert.equal(again.id, replies[accepted]!.body.data.id);
    assert.equal((await seller.get(`/v1/products/${productId}`)).body.data.images.length, 10);
  });

  test("PATCH: a new text and a new place; the first image is the cover", async () => {
    const productId = await createDraft(seller);
    const ids: string[] = [];
    for (const red of [10, 40, 80]) ids.push((await hasImage(await picture({ red }), productId)).id);
    const change = (id: string | undefined, body: object) =>
      seller.patch(`/v1/products/${productId}/images/${id}`, body);
    const readGallery = async (): Promise<[string, string][]> =>
      (await seller.get(`/v1/products/${productId}`)).body.data.gallery.map(
        ({ id, alt }: { id: string; alt: string }) => [id, alt],
      );
    const [one, two, three] = ids;
    const described = await change(two, { alt: "Rain" });
    assert.deepEqual([described.status, described.body.data.alt], [200, "Rain"]);
    assert.deepEqual(await readGallery(), [
      [one, ""],
      [two, "Rain"],
      [three, ""],
    ]);
    await change(three, { position: 1 });
    assert.deepEqual((await readGallery())[0], [three, ""]);
    await change(three, { position: 10 });
    assert.deepEqual((await readGallery())[2], [three, ""]);
    assertError(await change("img_nothing", { alt: "x" }), 404, "IMAGE_NOT_FOUND");
    assertError(await change(one, { position: 0 }), 400, "INVALID_REQUEST");
    const stranger = await market.createUser();
    const foreign = await stranger.patch(`/v1/products/${productId}/images/${one}`, { alt: "x" });
    assertError(foreign, 404, "PRODUCT_NOT_FOUND");
  });

  test("DELETE, an unknown id: 404", async () => {
    const reply = await seller.delete(`/v1/products/${await createDraft(seller)}/images/img_nothing`);
    assertError(reply, 404, "IMAGE_NOT_FOUND");
  });

  test("GET, any unknown path: 404", async () => {
    for (const name of [
      "x",
      `${"a".repeat(64)}-640.webp`,
      `${"a".repeat(64)}-641.webp`,
      "..%2f..%2fetc%2fpasswd",
    ])
      assert.equal((await fetch(`${market.origin}/images/${name}`)).status, 404);
  });
});
