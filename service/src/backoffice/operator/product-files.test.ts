import assert from "node:assert/strict";
import { test } from "node:test";
import { readFolder } from "../../catalog/import-export/files.ts";
import { collect } from "../../catalog/import-export/items.ts";
import { Problems } from "../../catalog/import-export/problems.ts";
import { problemLines } from "./product-files.ts";

test("no name of a file or a field gives commands to the operator's terminal", async () => {
  const problems = new Problems();
  const file = { name: "a\x1b]0;title\x07\n.md", bytes: Buffer.from("---\na: !<\x1b[2J> 1\n---\n") };
  await collect(readFolder([file]), problems, 1);
  let error: unknown;
  try {
    problems.mustBeNone();
  } catch (refusal) {
    error = refusal;
  }
  const [line, ...others] = problemLines(error)!;
  assert.match(line!, /^a\?\]0;title\?\?\.md:\d+: product: is not plain YAML/);
  assert.doesNotMatch(line!, /\p{Cc}/u);
  assert.deepEqual(others, []);
});
