import assert from "node:assert/strict";
import { createCipheriv, randomBytes } from "node:crypto";
import { suite, test } from "node:test";
import { createVault, fingerprintOf, type MasterKey } from "./vault.ts";

const CONTEXT = "provider-key|owner|row";
const ROUNDS = 200;
const keyOf = (id: string): MasterKey => ({ id, bytes: randomBytes(32) });

const texts = ["", "sk-1234567890", "naïve 🗝 key", "a.b.c", "x".repeat(100_000)];
/** A random text of random length. */
const randomText = () => randomBytes(Math.floor(Math.random() * 200)).toString("base64");
const randomBelow = (length: number) => Math.floor(Math.random() * length);

suite("the vault", () => {
  const master = keyOf("one");
  const vault = createVault([master]);
  const assertDoesNotOpen = (sealed: string, context = CONTEXT) => {
    assert.throws(() => vault.open(sealed, context), Error, `opens: ${sealed} in ${context}`);
  };

  test("open: returns any sealed text", () => {
    for (const text of [...texts, ...Array.from({ length: ROUNDS }, randomText)]) {
      assert.equal(vault.open(vault.seal(text, CONTEXT), CONTEXT), text);
    }
  });

  test("seal: hides the text and never returns the same value twice", () => {
    const seen = new Set(Array.from({ length: ROUNDS }, () => vault.seal("sk-1234567890", CONTEXT)));
    assert.equal(seen.size, ROUNDS);
    for (const sealed of seen) {
      assert.ok(!sealed.includes("sk-1234567890"));
      for (const part of sealed.split(".")) {
        assert.ok(!Buffer.from(part, "base64url").includes("sk-1234567890"));
      }
    }
  });

  test("open, any changed byte: throws", () => {
    const sealed = vault.seal("sk-1234567890", CONTEXT);
    const [format, keyId, ...boxes] = sealed.split(".") as [string, string, string, string];
    for (const [which, box] of boxes.entries()) {
      const bytes = Buffer.from(box, "base64url");
      for (let at = 0; at < bytes.length; at++) {
        const changed = Buffer.from(bytes);
        changed[at]! ^= 1 << randomBelow(8);
        const parts = boxes.with(which, changed.toString("base64url"));
        assertDoesNotOpen([format, keyId, ...parts].join("."));
      }
    }
  });

  test("open, any changed character, even if it decodes to the same bytes: throws", () => {
    const sealed = vault.seal("sk-1234567890", CONTEXT);
    for (let at = 0; at < sealed.length; at++) {
      for (const character of "ABCDw-_.! ") {
        if (sealed[at] === character) continue;
        assertDoesNotOpen(sealed.slice(0, at) + character + sealed.slice(at + 1));
        assertDoesNotOpen(sealed.slice(0, at) + character + sealed.slice(at));
      }
    }
  });

  test("open, a value that was cut, extended or combined from two: throws", () => {
    const sealed = vault.seal("sk-1234567890", CONTEXT);
    const other = vault.seal("sk-0987654321", CONTEXT);
    for (let length = 0; length < sealed.length; length++) assertDoesNotOpen(sealed.slice(0, length));
    for (const more of ["A", "AAAA", "=", " ", "!", ".", ".x"]) assertDoesNotOpen(sealed + more);
    assertDoesNotOpen(`AAAA${sealed}`);
    const [format, keyId, wrapped] = sealed.split(".");
    assertDoesNotOpen([format, keyId, wrapped, other.split(".")[3]].join("."));
    assertDoesNotOpen(["v2", keyId, wrapped, sealed.split(".")[3]].join("."));
    for (const nonsense of ["", ".", "...", "v1...", "v1.one..", "v1.one.AAAA.AAAA", "__proto__.one.a.b"]) {
      assertDoesNotOpen(nonsense);
    }
  });

  test("open, another context: throws", () => {
    const sealed = vault.seal("sk-1234567890", CONTEXT);
    for (let at = 0; at < CONTEXT.length; at++) {
      assertDoesNotOpen(sealed, CONTEXT.slice(0, at));
      assertDoesNotOpen(sealed, `${CONTEXT.slice(0, at)}?${CONTEXT.slice(at + 1)}`);
    }
    assertDoesNotOpen(sealed, `${CONTEXT} `);
    assertDoesNotOpen(sealed, "execution|owner|row");
  });

  test("open, an authentication tag shorter than 16 bytes: throws", () => {
    const withTagOf = (key: Buffer, text: Buffer, authTagLength: number) => {
      const iv = randomBytes(12);
      const cipher = createCipheriv("aes-256-gcm", key, iv, { authTagLength });
      cipher.setAAD(Buffer.from(`v1|${CONTEXT}`));
      return Buffer.concat([iv, cipher.update(text), cipher.final(), cipher.getAuthTag()]);
    };
    const forged = (tagBytes: number, secret: string) => {
      const dataKey = randomBytes(32);
      const boxes = [
        withTagOf(master.bytes, dataKey, tagBytes),
        withTagOf(dataKey, Buffer.from(secret), tagBytes),
      ];
      return ["v1", "one", ...boxes.map((box) => box.toString("base64url"))].join(".");
    };
    assert.equal(vault.open(forged(16, "a secret"), CONTEXT), "a secret", "made as the vault makes it");
    for (const tagBytes of [4, 8, 12, 13, 14, 15]) {
      assertDoesNotOpen(forged(tagBytes, "a secret"));
      assertDoesNotOpen(forged(tagBytes, ""));
    }
    // Too short for a tag: refused for its length before any comparison.
    const short = randomBytes(12).toString("base64url");
    assert.throws(() => vault.open(`v1.one.${short}.${short}`, CONTEXT), /tag length/i);
  });
});

suite("a keyring", () => {
  const old = keyOf("old");
  const newKey = keyOf("fresh");

  test("a new primary key: old values open, new values use the new key", () => {
    const sealedBefore = createVault([old]).seal("secret", CONTEXT);
    const rotated = createVault([newKey, old]);
    assert.equal(rotated.open(sealedBefore, CONTEXT), "secret");
    const sealedAfter = rotated.seal("secret", CONTEXT);
    assert.equal(createVault([newKey]).open(sealedAfter, CONTEXT), "secret");
    assert.throws(() => createVault([old]).open(sealedAfter, CONTEXT));
  });

  test("rewrap: wraps the data key under the primary key, only with the same context", () => {
    for (const text of texts) {
      const sealed = createVault([old]).seal(text, CONTEXT);
      const rewrapped = createVault([newKey, old]).rewrap(sealed, CONTEXT);
      assert.equal(createVault([newKey]).open(rewrapped, CONTEXT), text);
      assert.equal(rewrapped.split(".")[3], sealed.split(".")[3]);
      assert.throws(() => createVault([old]).open(rewrapped, CONTEXT));
      assert.throws(() => createVault([newKey, old]).rewrap(sealed, `${CONTEXT}?`));
      assert.throws(() => createVault([newKey]).rewrap(sealed, CONTEXT));
    }
  });

  test("without the sealing key: open throws, even if another key has its id", () => {
    const sealed = createVault([old]).seal("secret", CONTEXT);
    assert.throws(() => createVault([newKey]).open(sealed, CONTEXT));
    assert.throws(() => createVault([{ id: "old", bytes: newKey.bytes }]).open(sealed, CONTEXT));
    const renamed = sealed.replace("v1.old.", "v1.fresh.");
    assert.throws(() => createVault([newKey, old]).open(renamed, CONTEXT));
  });

  test("fingerprint: identifies the primary key without revealing it", () => {
    const { fingerprint } = createVault([newKey, old]);
    assert.equal(fingerprint, fingerprintOf(newKey));
    assert.notEqual(fingerprint, fingerprintOf(old));
    assert.match(fingerprint, /^[0-9a-f]{16}$/);
    assert.ok(!newKey.bytes.toString("hex").includes(fingerprint));
    assert.equal(fingerprintOf({ id: "other name", bytes: newKey.bytes }), fingerprint);
  });

  test("without a key: createVault throws", () => assert.throws(() => createVault([]), TypeError));
});
