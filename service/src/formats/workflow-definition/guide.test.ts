import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { findSchemaIssues } from "@stoa/evaluation/json-schema";
import { checkWorkflow } from "./check-workflow.ts";
import { loadExpressionCheck } from "./expression-check.ts";

const guide = await readFile(new URL("../../../../docs/guides/workflows.md", import.meta.url), "utf8");
const [example, broken] = [...guide.matchAll(/```json\n(.*?)```/gs)].map(([, text]) => text!);

/** The words in code style between two texts of the guide. */
function words(from: string, to: string): string[] {
  const [, part] = guide.split(from);
  return [...part!.split(to)[0]!.matchAll(/`(\$?\w+)`/g)].map(([, word]) => word!);
}

test("the workflow of the guide: valid", async () => {
  const checked = await checkWorkflow(example!);
  assert.ok("workflow" in checked, JSON.stringify(checked));
});

test("the problems of the guide: equal those of checkWorkflow", async () => {
  const checked = await checkWorkflow(broken!);
  assert.ok("problems" in checked);
  const [, documented] = /```text\n(.*?)```/s.exec(guide)!;
  assert.equal(checked.problems.map(({ field, reason }) => `${field}: ${reason}\n`).join(""), documented);
});

test("the functions of the guide: exist", async () => {
  const check = await loadExpressionCheck();
  const names = words("- Functions:", "- Macros:");
  assert.ok(names.includes("join") && names.length > 20);
  for (const name of names) {
    const uses = [`${name}(1)`, `''.${name}()`, `''.${name}('')`, `''.${name}('', '')`];
    const scope = { inputs: null, steps: new Set<string>(), ended: null, inMap: false };
    assert.ok(
      uses.some((use) => check(use, scope).length === 0),
      name,
    );
  }
});

test("the keywords of the guide: supported", () => {
  const keywords = words("the part of [JSON Schema", "An input has");
  assert.ok(keywords.length > 30);
  for (const keyword of keywords) {
    const issues = findSchemaIssues({ [keyword]: undefined }, []).map(({ reason }) => reason);
    const isTaken = !issues.some((reason) => /is not a supported|is not supported/.test(reason));
    assert.equal(isTaken, keyword !== "pattern", keyword);
  }
});
