import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import sharp from "sharp";
import { createDraft } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { picture, send } from "../../../test/uploads.ts";
import { sweepBlobs } from "../../catalog/files/blob-sweep.ts";
import { DAY_MS } from "../../core/dates.ts";

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

const createSession = async () => market.createSession((await market.createUser({ name: "Ada" })).userId);
const chooseHandle = (session: Client, handle: unknown) => session.patch("/v1/account", { handle });
const accountOf = async (session: Client) => (await session.get("/v1/account")).body.data;
const close = async (session: Client) => {
  const { email } = await accountOf(session);
  const reply = await session.request("DELETE", "/v1/account", { json: { confirm: email } });
  assert.equal(reply.status, 200, reply.text);
};

suite("a handle", () => {
  test("chosen once, stored in lower case: the same again changes nothing, another is 422", async () => {
    const session = await createSession();
    const first = await chooseHandle(session, " Ada-99 ");
    assert.equal(first.body.data?.handle, "ada-99", first.text);
    assert.equal((await chooseHandle(session, "ADA-99")).status, 200);
    assertError(await chooseHandle(session, "ada-100"), 422, "VALIDATION_ERROR", "handle");
    assertError(await chooseHandle(session, null), 400, "INVALID_REQUEST", "handle");
    await session.patch("/v1/account", { bio: "Engines." });
    assert.equal((await accountOf(session)).handle, "ada-99");
  });

  for (const handle of [
    "ab",
    "x".repeat(31),
    "-ada",
    "ada-",
    "ada--l",
    "ada_l",
    "ada.l",
    "ada l",
    "ad\u0430",
    "ada\u200b",
    "ada\u0000",
    "\u212aelvin",
    "ADMIN",
    "api",
    "settings",
    "sign-in",
    7,
    ["ada"],
  ]) {
    test(`${JSON.stringify(handle)}: refused`, async () => {
      const session = await createSession();
      assertError(await chooseHandle(session, handle), 400, "INVALID_REQUEST", "handle");
      assert.equal((await accountOf(session)).handle, null);
    });
  }

  test("of another account, in any case: 409, and nothing else of the request changes", async () => {
    const [owner, other] = [await createSession(), await createSession()];
    await chooseHandle(owner, "taken");
    const reply = await other.patch("/v1/account", { handle: "Taken", bio: "Changed." });
    assert.equal(assertError(reply, 409, "CONFLICT").field, "handle");
    const { handle, bio } = await accountOf(other);
    assert.deepEqual([handle, bio], [null, ""]);
  });

  test("chosen by ten accounts at once: one gets it; ten choices of one account: the first stays", async () => {
    const sessions = await Promise.all(Array.from({ length: 10 }, createSession));
    const rivals = await Promise.all(sessions.map((session) => chooseHandle(session, "contested")));
    assert.deepEqual(rivals.map(({ status }) => status).sort(), [200, ...Array(9).fill(409)]);
    const session = await createSession();
    const choices = await Promise.all(
      Array.from({ length: 10 }, (_, at) => chooseHandle(session, `choice-${at}`)),
    );
    const [chosen, ...others] = choices.toSorted((a, b) => a.status - b.status);
    assert.equal((await accountOf(session)).handle, chosen!.body.data.handle);
    for (const { status } of others) assert.equal(status, 422);
  });

  test("of a closed account: gone from the database, and never given to another", async () => {
    const [leaver, other] = [await createSession(), await createSession()];
    await chooseHandle(leaver, "leaver-mark");
    await close(leaver);
    const { rows } = await market.query("select from users where handle = 'leaver-mark'");
    assert.equal(rows.length, 0);
    assert.equal(assertError(await chooseHandle(other, "Leaver-Mark"), 409, "CONFLICT").field, "handle");
    assert.equal((await chooseHandle(other, "leaver-mark2")).status, 200);
  });

  test("chosen while the account that has it closes: never given to another", async () => {
    for (let n = 0; n < 5; n++) {
      const [leaver, other] = [await createSession(), await createSession()];
      await chooseHandle(leaver, `race-${n}`);
      const [, reply] = await Promise.all([close(leaver), chooseHandle(other, `race-${n}`)]);
      assertError(reply, 409, "CONFLICT");
      assert.equal((await accountOf(other)).handle, null);
    }
  });
});

suite("links", () => {
  const setLinks = (session: Client, links: unknown) => session.patch("/v1/account", { links });

  test("stored in the form of a browser, replaced as a whole, and sent back unchanged", async () => {
    const session = await createSession();
    const reply = await setLinks(session, [
      { url: " HTTPS://Example.com/a%20b" },
      { label: " My caf\u00e9 ", url: "https://caf\u00e9.example/\u00e9?q=\"<x>'" },
      { label: null, url: "https://example.com:8443/#top" },
    ]);
    const { links } = reply.body.data;
    assert.deepEqual(links, [
      { label: null, url: "https://example.com/a%20b" },
      { label: "My caf\u00e9", url: "https://xn--caf-dma.example/%C3%A9?q=%22%3Cx%3E%27" },
      { label: null, url: "https://example.com:8443/#top" },
    ]);
    assert.deepEqual((await setLinks(session, links)).body.data.links, links);
    assert.deepEqual((await session.patch("/v1/account", { bio: "Engines." })).body.data.links, links);
    assert.deepEqual((await setLinks(session, [])).body.data.links, []);
  });

  for (const url of [
    "http://example.com/",
    "javascript:alert(1)",
    "data:text/html,x",
    "//example.com/",
    "example.com",
    "https://ada:secret@example.com/",
    "https://paypal.com@example.com/",
    "https://localhost/",
    "https://127.0.0.1/",
    "https://2130706433/",
    "https://[::1]/",
    "https://exa mple.com/",
    "https://example.com/\u202egnp.exe",
    "https://example.com/\nset-cookie",
    "https://example.com/\u0000",
    `https://example.com/${"x".repeat(490)}`,
    `https://example.com/${"\u00e9".repeat(400)}`,
    "",
  ]) {
    test(`${JSON.stringify(url).slice(0, 60)}: refused`, async () => {
      const reply = await setLinks(await createSession(), [{ url }]);
      assertError(reply, 400, "INVALID_REQUEST", "links[0].url");
    });
  }

  test("changed without the name: the author's products stay as they are; a new profile text changes them", async () => {
    const seller = await market.createUser();
    const session = await market.createSession(seller.userId);
    const path = `/v1/products/${await createDraft(seller)}`;
    const etag = async () => (await seller.get(path)).headers.get("etag");
    const before = await etag();
    await session.patch("/v1/account", { links: [{ url: "https://example.com/notes" }], country: "DE" });
    assert.equal(await etag(), before);
    await session.patch("/v1/account", { bio: "Engines." });
    assert.notEqual(await etag(), before);
  });

  test("more than 5, hostile labels and unknown fields: refused", async () => {
    const session = await createSession();
    const link = { url: "https://example.com/" };
    assertError(await setLinks(session, Array(6).fill(link)), 400, "INVALID_REQUEST", "links");
    assertError(await setLinks(session, null), 400, "INVALID_REQUEST", "links");
    for (const label of ["", "a\u202eb", "two\nlines", "x".repeat(61)])
      assertError(await setLinks(session, [{ ...link, label }]), 400, "INVALID_REQUEST", "links[0].label");
    assertError(await setLinks(session, [{ ...link, rel: "me" }]), 400, "INVALID_REQUEST", "links[0].rel");
    assert.equal((await setLinks(session, Array(5).fill(link))).status, 200);
  });
});

suite("POST and DELETE /account/avatar", () => {
  type Bytes = Uint8Array<ArrayBuffer>;
  const upload = (session: Client, bytes: Bytes | string) =>
    send(session, "/v1/account/avatar", { name: "avatar.png", bytes });
  async function setAvatar(session: Client, bytes: Bytes): Promise<string> {
    const reply = await upload(session, bytes);
    assert.equal(reply.status, 201, reply.text);
    const { url } = reply.body.data;
    assert.deepEqual((await accountOf(session)).avatar, { url });
    return url;
  }
  const statusOf = async (url: string) => (await fetch(url)).status;
  const avatarKeys = async () =>
    (await market.query("select key from blobs where key like 'avatars/%'")).rows.length;

  test("WebP, at most 512 wide and high, upright, never enlarged, without metadata", async () => {
    const session = await createSession();
    const sizeOf = async (bytes: Bytes) => {
      const stored = Buffer.from(await (await fetch(await setAvatar(session, bytes))).arrayBuffer());
      const { format, width, height, exif, icc, xmp } = await sharp(stored).metadata();
      assert.deepEqual([format, exif, icc, xmp], ["webp", undefined, undefined, undefined]);
      assert.ok(!stored.includes("SECRETMARK"));
      return [width, height];
    };
    assert.deepEqual(await sizeOf(await picture({ width: 2_000, height: 1_000 })), [512, 256]);
    assert.deepEqual(await sizeOf(await picture({ width: 30, height: 60 })), [30, 60]);
    const camera = await sharp(await picture({ width: 60, height: 30 }))
      .jpeg()
      .withMetadata({ orientation: 6, exif: { IFD0: { Copyright: "SECRETMARK" } } })
      .toBuffer();
    assert.ok(camera.includes("SECRETMARK"));
    assert.deepEqual(await sizeOf(new Uint8Array(camera)), [30, 60]);
  });

  test("served as images are: immutable, for any site, 304 by ETag", async () => {
    const url = await setAvatar(await createSession(), await picture({ red: 21 }));
    const { headers } = await fetch(url);
    assert.equal(headers.get("content-type"), "image/webp");
    assert.equal(headers.get("cache-control"), "public, max-age=31536000, immutable");
    assert.equal(headers.get("cross-origin-resource-policy"), "cross-origin");
    const again = await fetch(url, { headers: { "if-none-match": headers.get("etag")! } });
    assert.equal(again.status, 304);
    assert.equal(await statusOf(url.replace(".webp", "-320.webp")), 404);
    assert.equal(await statusOf(url.replace(/\/[0-9a-f]{64}/, `/${"0".repeat(64)}`)), 404);
  });

  test("another one: the old URL is 404 at once, and its bytes are deleted after a day", async () => {
    const session = await createSession();
    const first = await setAvatar(session, await picture({ red: 31 }));
    const second = await setAvatar(session, await picture({ red: 32 }));
    assert.deepEqual([await statusOf(first), await statusOf(second)], [404, 200]);
    const before = await avatarKeys();
    market.clock.forward(DAY_MS + 1);
    await sweepBlobs(market.service.ctx);
    assert.ok((await avatarKeys()) < before);
    assert.equal(await statusOf(second), 200);
    const returned = await market.createSession(session.userId);
    assert.equal(await statusOf(await setAvatar(returned, await picture({ red: 31 }))), 200);
  });

  test("of two accounts with the same picture: stays while one shows it", async () => {
    const [ada, eve] = [await createSession(), await createSession()];
    const url = await setAvatar(ada, await picture({ red: 41 }));
    assert.equal(await setAvatar(eve, await picture({ red: 41 })), url);
    assert.deepEqual((await ada.delete("/v1/account/avatar")).body.data, { removed: true });
    assert.equal((await accountOf(ada)).avatar, null);
    assert.equal(await statusOf(url), 200);
    await close(eve);
    assert.equal(await statusOf(url), 404);
    assert.equal((await ada.delete("/v1/account/avatar")).status, 200, "none: succeeds too");
  });

  test("no picture, or a damaged one: refused, and the present avatar stays", async () => {
    const session = await createSession();
    const url = await setAvatar(session, await picture({ red: 51 }));
    const half = (await picture({ width: 300, height: 300 })).slice(0, 200);
    for (const bytes of ["", "<svg xmlns='http://www.w3.org/2000/svg'/>", "%PDF-1.7", half])
      assertError(await upload(session, bytes), 400, "INVALID_REQUEST", "file");
    const large = new Uint8Array(5 * 1024 * 1024 + 1);
    assertError(await upload(session, large), 413, "PAYLOAD_TOO_LARGE");
    assert.deepEqual((await accountOf(session)).avatar, { url });
  });

  test("an API key: refused", async () => {
    const key = await market.createUser();
    const details = assertError(await upload(key, await picture()), 403, "UNAUTHORIZED");
    assert.equal(details.required, "session");
  });

  test("an audit entry with the name of the field; none for the same picture", async () => {
    const session = await createSession();
    const bytes = await picture({ red: 61 });
    for (let n = 0; n < 2; n++) await setAvatar(session, bytes);
    const { rows } = await market.query("select details from audit_log where actor_id = $1", [
      session.userId,
    ]);
    assert.deepEqual(rows, [{ details: { fields: ["avatar"] } }]);
  });

  test("an ETag that precedes the avatar: outdated", async () => {
    const session = await createSession();
    await createDraft(session);
    const etag = (await session.get("/v1/account")).headers.get("etag")!;
    await setAvatar(session, await picture({ red: 71 }));
    const late = await session.patch("/v1/account", { bio: "Engines." }, { "if-match": etag });
    assertError(late, 412, "PRECONDITION_FAILED");
  });
});
