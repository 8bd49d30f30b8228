import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { anyCharacter } from "../../../test/any-character.ts";
import { runs } from "../../../test/full-size.ts";
import { createUtf8Decoder } from "./utf8-decoder.ts";

const anyText = fc.string({ unit: anyCharacter }).map((text) => Buffer.from(text));
/** Among them beginnings of characters before ASCII, before other beginnings, and alone. */
const anyBytes = fc.array(
  fc.constantFrom(0x41, 0x7f, 0x80, 0xbf, 0xc0, 0xc3, 0xe2, 0x82, 0xac, 0xf0, 0x9f, 0xff),
);

test("createUtf8Decoder, any bytes one by one: the text of a TextDecoder", () => {
  fc.assert(
    fc.property(fc.oneof(anyText, anyBytes), (bytes) => {
      const decode = createUtf8Decoder();
      const expected = new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes), {
        stream: true,
      });
      assert.equal(Array.from(bytes, decode).join(""), expected);
    }),
    // The second byte ends an invalid character and begins another one.
    { numRuns: runs(1_000), examples: [[[0xc3, 0xc3, 0x41]]] },
  );
});
