import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { checkWorkflow } from "../../formats/workflow-definition/check-workflow.ts";

const workflows = JSON.parse(await readFile(new URL("./workflows.json", import.meta.url), "utf8"));

for (const { title, definition } of workflows) {
  test(`${title}: a runnable workflow`, async () => {
    const checked = await checkWorkflow(JSON.stringify(definition));
    assert.ok("workflow" in checked, JSON.stringify(checked));
  });
}
