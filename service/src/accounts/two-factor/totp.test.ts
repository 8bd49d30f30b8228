import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import { generateSync } from "otplib";
import { anyCharacter } from "../../../test/any-character.ts";
import { runs } from "../../../test/full-size.ts";
import { findTimeStep, generateTotpSecret, renderQrCode, toOtpauthUri } from "./totp.ts";

/** RFC 6238, appendix B: the SHA-1 secret and its codes, of which an app shows the last six digits. */
const RFC_SECRET = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";
const RFC_CODES: [seconds: number, code: string][] = [
  [59, "287082"],
  [1_111_111_109, "081804"],
  [1_111_111_111, "050471"],
  [1_234_567_890, "005924"],
  [2_000_000_000, "279037"],
  [20_000_000_000, "353130"],
];

const codeOf = (step: number) => generateSync({ secret: RFC_SECRET, epoch: step * 30 });
const at = (seconds: number) => new Date(seconds * 1000);
const seconds = fc.integer({ min: 1_700_000_000, max: 2_500_000_000 });

suite("a TOTP code", () => {
  test("matches RFC 6238", () => {
    for (const [time, code] of RFC_CODES) {
      assert.equal(findTimeStep(RFC_SECRET, code, at(time)), Math.floor(time / 30), `at ${time}`);
    }
  });

  test("valid in its 30 seconds, 10 seconds after and 5 before", () => {
    fc.assert(
      fc.property(seconds, fc.integer({ min: -90, max: 90 }), (now, away) => {
        const step = Math.floor((now + away) / 30);
        const codes = [-4, -3, -2, -1, 0, 1, 2, 3, 4].map((n) => codeOf(Math.floor(now / 30) + n));
        fc.pre(new Set(codes).size === codes.length);
        const isInTime = step * 30 - 5 <= now && now <= step * 30 + 29 + 10;
        assert.equal(findTimeStep(RFC_SECRET, codeOf(step), at(now)), isInTime ? step : null);
      }),
      { numRuns: runs(1000) },
    );
  });

  test("of another secret: invalid", () => {
    fc.assert(
      fc.property(seconds, (now) => {
        const [own, other] = [generateTotpSecret(), generateTotpSecret()];
        const code = generateSync({ secret: other, epoch: now });
        const validNow = [-30, 0, 30].map((offset) => generateSync({ secret: own, epoch: now + offset }));
        fc.pre(!validNow.includes(code));
        assert.equal(findTimeStep(own, code, at(now)), null);
      }),
    );
  });

  test("of any other shape: invalid, no error", () => {
    const strange = fc.oneof(
      fc.string({ unit: anyCharacter }),
      fc.constantFrom(
        "",
        "12345",
        "1234567",
        "12 456",
        "１２３４５６",
        "12345\n",
        "-12345",
        "1e5000",
        "0x1234",
      ),
    );
    fc.assert(fc.property(strange, seconds, (code, now) => findTimeStep(RFC_SECRET, code, at(now)) === null));
  });
});

test("a new secret: 160 bits, different each time", () => {
  const secrets = Array.from({ length: 50 }, generateTotpSecret);
  for (const secret of secrets) assert.match(secret, /^[A-Z2-7]{32}$/);
  assert.equal(new Set(secrets).size, secrets.length);
});

test("the otpauth URI: has service, account and secret, for any address", () => {
  const uri = new URL(toOtpauthUri(RFC_SECRET, "ada+x&secret=AAAA?#%@example.com"));
  assert.equal(uri.protocol, "otpauth:");
  assert.equal(uri.searchParams.get("secret"), RFC_SECRET);
  assert.equal(uri.searchParams.get("issuer"), "Stoa");
  assert.deepEqual(uri.searchParams.getAll("secret").length, 1);
  assert.match(decodeURIComponent(uri.pathname), /Stoa:ada\+x&secret=AAAA\?#%@example\.com$/);
});

test("the QR code: an SVG data: URL without script", () => {
  const url = renderQrCode(toOtpauthUri(RFC_SECRET, "ada@example.com"));
  const [head, body] = url.split(",");
  assert.equal(head, "data:image/svg+xml;base64");
  const svg = Buffer.from(body!, "base64").toString();
  assert.match(svg, /^<svg [^>]*viewBox/);
  assert.doesNotMatch(svg, /<script|onload|href/i);
});
