import assert from "node:assert/strict";
import { createCipheriv, randomBytes } from "node:crypto";
import { suite, test } from "node:test";
import { createVault, fingerprintOf, type MasterKey } from "./vault.ts";

const CONTEXT = "provider-key|owner|row";
const ROUNDS = 200;
const keyOf = (id: string): MasterKey => ({ id, bytes: randomBytes(32) });

const texts = ["", "sk-1234567890", "naïve 🗝 key", "a.b.c", "x".repeat(100_000)];
/** Binary in disguise: any text of any length, a new one each time. */
const someText = () => randomBytes(Math.floor(Math.random() * 200)).toString("base64");
const someOf = (length: number) => Math.floor(Math.random() * length);

suite("the vault", () => {
  const master = keyOf("one");
  const vault = createVault([master]);
  const mustNotOpen = (sealed: string, context = CONTEXT) => {
    assert.throws(() => vault.open(sealed, context), Error, `opens: ${sealed} in ${context}`);
  };

  test("opens what it sealed, whatever the text is", () => {
    for (const text of [...texts, ...Array.from({ length: ROUNDS }, someText)]) {
      assert.equal(vault.open(vault.seal(text, CONTEXT), CONTEXT), text);
    }
  });

  test("shows nothing of the text, and never seals the same text to the same words", () => {
    const seen = new Set(Array.from({ length: ROUNDS }, () => vault.seal("sk-1234567890", CONTEXT)));
    assert.equal(seen.size, ROUNDS);
    for (const sealed of seen) {
      assert.ok(!sealed.includes("sk-1234567890"));
      for (const part of sealed.split(".")) {
        assert.ok(!Buffer.from(part, "base64url").includes("sk-1234567890"));
      }
    }
  });

  test("does not open a text of which any byte was changed", () => {
    const sealed = vault.seal("sk-1234567890", CONTEXT);
    const [format, keyId, ...boxes] = sealed.split(".") as [string, string, string, string];
    for (const [which, box] of boxes.entries()) {
      const bytes = Buffer.from(box, "base64url");
      for (let at = 0; at < bytes.length; at++) {
        const changed = Buffer.from(bytes);
        changed[at]! ^= 1 << someOf(8);
        const parts = boxes.with(which, changed.toString("base64url"));
        mustNotOpen([format, keyId, ...parts].join("."));
      }
    }
  });

  test("does not open a text of which any character was changed, even if it decodes to the same bytes", () => {
    const sealed = vault.seal("sk-1234567890", CONTEXT);
    for (let at = 0; at < sealed.length; at++) {
      for (const character of "ABCDw-_.! ") {
        if (sealed[at] === character) continue;
        mustNotOpen(sealed.slice(0, at) + character + sealed.slice(at + 1));
        mustNotOpen(sealed.slice(0, at) + character + sealed.slice(at));
      }
    }
  });

  test("does not open a text that was cut, stretched or put together from two", () => {
    const sealed = vault.seal("sk-1234567890", CONTEXT);
    const other = vault.seal("sk-0987654321", CONTEXT);
    for (let length = 0; length < sealed.length; length++) mustNotOpen(sealed.slice(0, length));
    for (const more of ["A", "AAAA", "=", " ", "!", ".", ".x"]) mustNotOpen(sealed + more);
    mustNotOpen(`AAAA${sealed}`);
    const [format, keyId, wrapped] = sealed.split(".");
    mustNotOpen([format, keyId, wrapped, other.split(".")[3]].join("."));
    mustNotOpen(["v2", keyId, wrapped, sealed.split(".")[3]].join("."));
    for (const nonsense of ["", ".", "...", "v1...", "v1.one..", "v1.one.AAAA.AAAA", "__proto__.one.a.b"]) {
      mustNotOpen(nonsense);
    }
  });

  test("opens a text in its own context alone", () => {
    const sealed = vault.seal("sk-1234567890", CONTEXT);
    for (let at = 0; at < CONTEXT.length; at++) {
      mustNotOpen(sealed, CONTEXT.slice(0, at));
      mustNotOpen(sealed, `${CONTEXT.slice(0, at)}?${CONTEXT.slice(at + 1)}`);
    }
    mustNotOpen(sealed, `${CONTEXT} `);
    mustNotOpen(sealed, "execution|owner|row");
  });

  test("does not take a tag of fewer than 16 bytes, which could be guessed", () => {
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
      mustNotOpen(forged(tagBytes, "a secret"));
      mustNotOpen(forged(tagBytes, ""));
    }
    // So short that the last 16 bytes would be 4: refused for the tag's length, before it is compared.
    const short = randomBytes(12).toString("base64url");
    assert.throws(() => vault.open(`v1.one.${short}.${short}`, CONTEXT), /tag length/i);
  });
});

suite("a keyring", () => {
  const old = keyOf("old");
  const fresh = keyOf("fresh");

  test("whose primary was rotated opens what the old one sealed, and seals with the new one", () => {
    const sealedBefore = createVault([old]).seal("secret", CONTEXT);
    const rotated = createVault([fresh, old]);
    assert.equal(rotated.open(sealedBefore, CONTEXT), "secret");
    const sealedAfter = rotated.seal("secret", CONTEXT);
    assert.equal(createVault([fresh]).open(sealedAfter, CONTEXT), "secret");
    assert.throws(() => createVault([old]).open(sealedAfter, CONTEXT));
  });

  test("wraps anew what another key had wrapped, without opening it and for the same context alone", () => {
    for (const text of texts) {
      const sealed = createVault([old]).seal(text, CONTEXT);
      const rewrapped = createVault([fresh, old]).rewrap(sealed, CONTEXT);
      assert.equal(createVault([fresh]).open(rewrapped, CONTEXT), text);
      assert.equal(rewrapped.split(".")[3], sealed.split(".")[3]);
      assert.throws(() => createVault([old]).open(rewrapped, CONTEXT));
      assert.throws(() => createVault([fresh, old]).rewrap(sealed, `${CONTEXT}?`));
      assert.throws(() => createVault([fresh]).rewrap(sealed, CONTEXT));
    }
  });

  test("without the key that sealed does not open, even if another has its name", () => {
    const sealed = createVault([old]).seal("secret", CONTEXT);
    assert.throws(() => createVault([fresh]).open(sealed, CONTEXT));
    assert.throws(() => createVault([{ id: "old", bytes: fresh.bytes }]).open(sealed, CONTEXT));
    const renamed = sealed.replace("v1.old.", "v1.fresh.");
    assert.throws(() => createVault([fresh, old]).open(renamed, CONTEXT));
  });

  test("has the fingerprint of its primary, which tells nothing of the key", () => {
    const { fingerprint } = createVault([fresh, old]);
    assert.equal(fingerprint, fingerprintOf(fresh));
    assert.notEqual(fingerprint, fingerprintOf(old));
    assert.match(fingerprint, /^[0-9a-f]{16}$/);
    assert.ok(!fresh.bytes.toString("hex").includes(fingerprint));
    assert.equal(fingerprintOf({ id: "other name", bytes: fresh.bytes }), fingerprint);
  });

  test("needs a key", () => assert.throws(() => createVault([]), TypeError));
});
