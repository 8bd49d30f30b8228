import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Cell, csvLines } from "./csv.ts";

async function lineOf(...cells: Cell[]): Promise<string> {
  let line = "";
  for await (const each of csvLines(["name"], [cells])) line = each;
  return line;
}

test("text stands in quotes where something in it would end the cell", async () => {
  assert.equal(
    await lineOf("a", 'say "b"', "c,d", "e\nf", "g;h", "", null, -0.5, 3),
    'a,"say ""b""","c,d","e\nf","g;h",,,-0.5,3\r\n',
  );
});

for (const [what, text, shown] of [
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
  test(`text that begins with ${what} is no formula`, async () => {
    assert.equal(await lineOf(text), `${shown}\r\n`);
  });

test("nor is what begins behind a semicolon, a tab or in a new line", async () => {
  assert.equal(await lineOf("x;=1"), `"x;'=1"\r\n`);
  assert.equal(await lineOf("x\t=1\n @y"), `"x\t'=1\n' @y"\r\n`);
});

test("what is no formula stays as it is", async () => {
  for (const text of ["Ada", "a=b", "1-2", "mail@example.com", "'quoted'"])
    assert.equal(await lineOf(text), `${text}\r\n`);
});

/** A reader of RFC 4180, for one line. */
const cellsIn = (line: string) =>
  [...`${line.slice(0, -2)},`.matchAll(/(?:"((?:[^"]|"")*)"|([^",]*)),/g)].map(([, text, plain]) =>
    text === undefined ? plain! : text.replaceAll('""', '"'),
  );

test("any cells come back as they were, but for apostrophes", async () => {
  const text = fc.string({ unit: fc.constantFrom("=", "-", "a", '"', ",", ";", "\n", "\r", "\t", " ", "é") });
  await fc.assert(
    fc.asyncProperty(fc.array(text, { minLength: 1 }), async (texts) => {
      const cells = cellsIn(await lineOf(...texts));
      assert.deepEqual(
        cells.map((cell) => cell.replaceAll("'", "")),
        texts,
      );
      for (const cell of cells) assert.doesNotMatch(cell, /(?:^|[;\t\r\n])\s*[=+\-@]/);
    }),
  );
});
