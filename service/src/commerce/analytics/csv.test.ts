import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Cell, csvLines } from "./csv.ts";

async function lineOf(...cells: Cell[]): Promise<string> {
  let line = "";
  for await (const each of csvLines(["name"], [cells])) line = each;
  return line;
}

test("csvLines: quotes cells with quotes, commas and line breaks", async () => {
  assert.equal(
    await lineOf("a", 'say "b"', "c,d", "e\nf", "g;h", "", null, -0.5, 3),
    'a,"say ""b""","c,d","e\nf","g;h",,,-0.5,3\r\n',
  );
});

for (const [what, text, expected] of [
  ["=", "=1+1", "'=1+1"],
  ["+", "+1", "'+1"],
  ["-", "-1", "'-1"],
  ["@", "@SUM(A1)", "'@SUM(A1)"],
  ["a tab", "\tx", "'\tx"],
  ["a CR", "\rx", '"\'\rx"'],
  ["a line feed", "\nx", '"\'\nx"'],
  ["a formula behind blanks", "  =1", "'  =1"],
  ["a formula in full width", "＝1", "'＝1"],
] as const)
  test(`csvLines, text that begins with ${what}: prefixed with an apostrophe`, async () => {
    assert.equal(await lineOf(text), `${expected}\r\n`);
  });

test("csvLines, formulas after a semicolon, a tab or a line break: prefixed with an apostrophe", async () => {
  assert.equal(await lineOf("x;=1"), `"x;'=1"\r\n`);
  assert.equal(await lineOf("x\t=1\n @y"), `"x\t'=1\n' @y"\r\n`);
});

test("csvLines, other text: unchanged", async () => {
  for (const text of ["Ada", "a=b", "1-2", "mail@example.com", "'quoted'"])
    assert.equal(await lineOf(text), `${text}\r\n`);
});

/** Parses one line as in RFC 4180. */
const parseLine = (line: string) =>
  [...`${line.slice(0, -2)},`.matchAll(/(?:"((?:[^"]|"")*)"|([^",]*)),/g)].map(([, text, plain]) =>
    text === undefined ? plain! : text.replaceAll('""', '"'),
  );

test("csvLines, any cells: a reader gets them back, apart from apostrophes", async () => {
  const text = fc.string({ unit: fc.constantFrom("=", "-", "a", '"', ",", ";", "\n", "\r", "\t", " ", "é") });
  await fc.assert(
    fc.asyncProperty(fc.array(text, { minLength: 1 }), async (texts) => {
      const cells = parseLine(await lineOf(...texts));
      assert.deepEqual(
        cells.map((cell) => cell.replaceAll("'", "")),
        texts,
      );
      for (const cell of cells) assert.doesNotMatch(cell, /(?:^|[;\t\r\n])\s*[=+\-@]/);
    }),
  );
});
