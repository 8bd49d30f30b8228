import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import { anyCharacter } from "../../../test/any-character.ts";
import { runs } from "../../../test/full-size.ts";
import { safeReturnTo } from "./return-to.ts";

const FALLBACK = "/auth/signed-in";
const ORIGINS = ["https://market.example", "http://localhost:4000", "http://127.0.0.1:4000"];

/** The origin that a browser would go to. */
const leadsTo = (location: string, origin: string) => new URL(location, `${origin}/auth/sign-in`).origin;

function mustStayHere(value: unknown): void {
  const location = safeReturnTo(value);
  for (const origin of ORIGINS) assert.equal(leadsTo(location, origin), origin, JSON.stringify(value));
  assert.match(location, /^\/(?!\/)[\x21-\x7e]*$/, "fit for a header");
  assert.equal(safeReturnTo(location), location, "what is safe stays as it is");
}

const HOSTILE = [
  "https://evil.example",
  "//evil.example",
  "///evil.example",
  "/\\evil.example",
  "\\\\evil.example",
  "\\/evil.example",
  "/.//evil.example",
  "/..//evil.example",
  "/././/evil.example",
  "/%2e//evil.example",
  "/%2E%2e//evil.example",
  "/a/..//evil.example",
  "/a/../..//evil.example",
  "/a/%2e%2e//evil.example",
  "/.//\\evil.example",
  "/\t/evil.example",
  "/\n/evil.example",
  "/\r\n/evil.example",
  "\t//evil.example",
  " //evil.example",
  "/\u0000/evil.example",
  "/\u007f/evil.example",
  "javascript:alert(1)",
  "JaVaScRiPt:alert(1)",
  "data:text/html,x",
  "http:evil.example",
  "https:/evil.example",
  "@evil.example",
  ".evil.example",
  "evil.example",
  "?x=//evil.example",
  "#//evil.example",
  "",
  "/\r\nset-cookie: a=b",
];

suite("returnTo after sign-in", () => {
  test("another site in any spelling: ignored", () => {
    for (const value of HOSTILE) assert.equal(safeReturnTo(value), FALLBACK, JSON.stringify(value));
  });

  test("no text: the page of the signed-in account", () => {
    for (const value of [undefined, null, 7, ["/docs"], { path: "/docs" }, true])
      assert.equal(safeReturnTo(value), FALLBACK);
  });

  test("an own path: with query and fragment", () => {
    for (const path of [
      "/",
      "/docs",
      "/docs?tag=ai#errors",
      "/oauth/authorize?client_id=x&redirect_uri=https%3A%2F%2Fapp.example%2Fcb&state=a.b",
      "/search?q=https://evil.example/",
      "/a//b",
    ])
      assert.equal(safeReturnTo(path), path);
  });

  test("other letters: encoded as a browser sends them", () => {
    assert.equal(safeReturnTo("/suche?q=größe ja"), "/suche?q=gr%C3%B6%C3%9Fe%20ja");
  });

  test("too long for a cookie: ignored", () => {
    assert.equal(safeReturnTo(`/${"a".repeat(2_000)}`), FALLBACK);
    assert.equal(safeReturnTo(`/${"ö".repeat(700)}`), FALLBACK);
  });

  test("random pieces of URLs: always an own path", () => {
    const piece = fc.constantFrom(
      ..."/ // \\ . .. %2e %2E %2f %5c %00 %09 @ : ? # & ; evil.example localhost:4000 http: https: javascript: user:pw@ [::1] a".split(
        " ",
      ),
      "\t",
      "\n",
      "\r",
      " ",
      "\u0000",
      "\u00a0",
      "\u2028",
      "\ufeff",
      "／",
      "＼",
      "．",
      "。",
      "%",
      "\ud800",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), fc.boolean(), (pieces, asPath) =>
        mustStayHere((asPath ? "/" : "") + pieces.join("")),
      ),
      { numRuns: runs(5000) },
    );
  });

  test("random text: always an own path", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: anyCharacter }), fc.webUrl(), fc.webPath()), (text) => {
        mustStayHere(text);
        mustStayHere(`/${text}`);
      }),
      { numRuns: runs(2000) },
    );
  });
});
