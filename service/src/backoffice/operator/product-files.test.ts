import assert from "node:assert/strict";
import { test } from "node:test";
import { readMarkdownFiles } from "../../catalog/import-export/import-file.ts";
import { collectItems } from "../../catalog/import-export/import-items.ts";
import { ImportProblems } from "../../catalog/import-export/import-problems.ts";
import { formatProblems } from "./product-files.ts";

test("hostile names of files and fields: no control characters on the operator's terminal", async () => {
  const problems = new ImportProblems();
  const file = { name: "a\x1b]0;title\x07\n.md", bytes: Buffer.from("---\na: !<\x1b[2J> 1\n---\n") };
  await collectItems(readMarkdownFiles([file]), problems, 1);
  let error: unknown;
  try {
    problems.throwIfAny();
  } catch (refusal) {
    error = refusal;
  }
  const [line, ...others] = formatProblems(error)!;
  assert.match(line!, /^a\?\]0;title\?\?\.md:\d+: product: is not plain YAML/);
  assert.doesNotMatch(line!, /\p{Cc}/u);
  assert.deepEqual(others, []);
});
