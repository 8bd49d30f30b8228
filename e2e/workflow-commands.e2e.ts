/** The commands of the workflow editor without the editor: whatever is done can be taken back and done again. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { checkWorkflow } from "@stoa/service/formats/workflow-definition/check-workflow.ts";
import { definitionOf, echoStep, transformStep } from "@stoa/service/test/workflows.ts";
import { type EditHistory, recordEdit, redo, startHistory, undo } from "@stoa/web/edit-history";
import { applyCommand, type WorkflowCommand } from "@stoa/web/workflow-commands";
import { diffWorkflows } from "@stoa/web/workflow-diff";
import {
  freeId,
  needsOf,
  newStep,
  parseText,
  STEP_TYPES,
  stepsOf,
  type WorkflowDocument,
} from "@stoa/web/workflow-document";
import { toProblem } from "@stoa/web/workflow-problems";
import fc from "fast-check";

const START: WorkflowDocument = {
  text: definitionOf({
    input: { type: "object", properties: { topic: { type: "string" } } },
    steps: [
      echoStep("outline", "On {{topic}}", { vars: { topic: "input.topic" } }),
      transformStep("parts", "[steps.outline.output]", { needs: ["outline"] }),
      {
        ...{ id: "drafts", type: "map", needs: ["parts"], items: "steps.parts.output" },
        do: { type: "transform", value: "item + steps.outline.output" },
      },
      { id: "ask", type: "approval", needs: ["drafts"], timeoutSeconds: 60 },
    ],
    result: "steps.drafts.output",
  }),
  positions: { parts: { x: 10, y: 20 } },
};

// Also ids that no step has, and names of the prototype.
const id = fc.constantFrom("outline", "parts", "drafts", "ask", "prompt", "new1", "none", "constructor", "");
const number = fc.integer({ min: -500, max: 2_000 });
const position = fc.record({ x: number, y: number });
const path = fc.array(
  fc.oneof(
    fc.constantFrom("vars", "topic", "messages", "content", "value", "do", "needs", "__proto__"),
    fc.nat(2),
  ),
  { minLength: 1, maxLength: 4 },
);
const step = fc
  .record({ type: fc.constantFrom(...STEP_TYPES), id, needs: fc.array(id, { maxLength: 2 }) })
  .map((given) => newStep(given.type, given.id, given.needs, "openai"));

const command: fc.Arbitrary<WorkflowCommand> = fc.oneof(
  fc.record({
    kind: fc.constant("set-source" as const),
    text: fc.oneof(fc.json(), fc.string(), fc.constant(START.text)),
  }),
  fc.record(
    { kind: fc.constant("add-step" as const), step, before: id, position },
    { requiredKeys: ["kind", "step"] },
  ),
  fc.record({ kind: fc.constant("remove-steps" as const), ids: fc.array(id, { maxLength: 3 }) }),
  fc.record({ kind: fc.constant("rename-step" as const), id, to: id }),
  fc.record({ kind: fc.constant("duplicate-step" as const), id, to: id }),
  fc.record({ kind: fc.constant("connect" as const), from: id, to: id }),
  fc.record({ kind: fc.constant("disconnect" as const), from: id, to: id }),
  fc.record({
    kind: fc.constant("set-field" as const),
    id,
    path,
    value: fc.option(fc.jsonValue(), { nil: undefined }),
  }),
  fc.record({
    kind: fc.constant("set-workflow" as const),
    field: fc.constantFrom("input" as const, "result" as const),
    value: fc.jsonValue(),
  }),
  fc.record({ kind: fc.constant("move-steps" as const), positions: fc.dictionary(id, position) }),
  fc.record({ kind: fc.constant("tidy-up" as const) }),
);

function freeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  for (const part of Object.values(value)) freeze(part);
  return Object.freeze(value);
}

/** As text, so that a later change of the object cannot hide. */
const print = (document: WorkflowDocument): string => JSON.stringify(document);

suite("commands of the workflow editor", () => {
  test("any commands: undo restores each document exactly, redo does again", () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ command, pauseMs: fc.nat(3_000), mergeKey: fc.constantFrom(null, "a", "b") }), {
          maxLength: 25,
        }),
        (edits) => {
          let history: EditHistory<WorkflowDocument> = startHistory(freeze(START));
          let at = 0;
          for (const edit of edits) {
            at += edit.pauseMs;
            const before = history.present;
            const after = freeze(applyCommand(before, freeze(edit.command)));
            history = recordEdit(history, after, { mergeKey: edit.mergeKey, at });
            assert.deepEqual(history.present, after);
            if (after === before) continue;
            const back = undo(history);
            assert.deepEqual(redo(back).present, after);
            if (edit.mergeKey === null) assert.deepEqual(back.present, before);
          }
          const end = print(history.present);
          const shown = [end];
          while (history.past.length > 0) {
            history = undo(history);
            shown.push(print(history.present));
          }
          assert.deepEqual(history.present, START);
          for (const document of shown.toReversed()) {
            assert.equal(print(history.present), document);
            history = redo(history);
          }
          assert.equal(print(history.present), end);
        },
      ),
      { numRuns: 1_000 },
    );
  });

  test("any command on a valid workflow: JSON stays JSON, and no step needs a step that was removed", () => {
    fc.assert(
      fc.property(fc.array(command, { maxLength: 10 }), (commands) => {
        let document = START;
        for (const one of commands) {
          const next = applyCommand(document, one);
          if (one.kind !== "set-source" && parseText(document.text))
            assert.ok(parseText(next.text), JSON.stringify(one));
          if (one.kind === "remove-steps")
            for (const left of stepsOf(parseText(next.text)))
              assert.deepEqual(
                needsOf(left).filter((need) => one.ids.includes(need)),
                next === document ? needsOf(left).filter((need) => one.ids.includes(need)) : [],
              );
          document = next;
        }
      }),
      { numRuns: 500 },
    );
  });

  test("rename, connect, insert and duplicate: a valid workflow stays valid", async () => {
    const commands: WorkflowCommand[] = [
      { kind: "rename-step", id: "outline", to: "plan" },
      { kind: "rename-step", id: "parts", to: "outline" },
      { kind: "connect", from: "plan", to: "ask" },
      { kind: "add-step", step: newStep("transform", "between", ["outline"], "openai"), before: "drafts" },
      { kind: "connect", from: "outline", to: "drafts" },
      { kind: "duplicate-step", id: "ask", to: "again" },
      // A circle is refused.
      { kind: "connect", from: "ask", to: "plan" },
    ];
    let document = START;
    for (const one of commands) {
      document = applyCommand(document, one);
      assert.ok("workflow" in (await checkWorkflow(document.text)), JSON.stringify(one) + document.text);
    }
    const definition = parseText(document.text);
    assert.equal(freeId(stepsOf(definition), "again"), "again2");
    assert.equal(stepsOf(definition).length, 6);
    assert.deepEqual(document.positions, { outline: { x: 10, y: 20 } });
  });

  test("a difference: what was added, removed and changed, with the fields", () => {
    const changed: WorkflowCommand[] = [
      { kind: "set-field", id: "parts", path: ["value"], value: "[]" },
      { kind: "remove-steps", ids: ["ask"] },
      { kind: "add-step", step: newStep("delay", "pause", [], "openai") },
      { kind: "set-workflow", field: "result", value: "1" },
    ];
    const after = changed.reduce(applyCommand, START);
    const diff = diffWorkflows(START.text, after.text);
    assert.deepEqual(
      diff?.steps.map(({ id, kind, fields }) => [id, kind, fields.map(({ field }) => field)]),
      [
        ["parts", "changed", ["value"]],
        ["pause", "added", ["seconds"]],
        ["ask", "removed", ["needs", "timeoutSeconds"]],
      ],
    );
    assert.deepEqual(diff?.workflow, [{ field: "result", before: "steps.drafts.output", after: "1" }]);
  });

  test("a problem: its step, its field and its line", () => {
    const text = JSON.stringify(parseText(START.text), null, 2);
    const at = toProblem(text, { field: "content.steps[1].value", reason: "is wrong" });
    assert.deepEqual([at.stepId, at.label, at.sentence], ["parts", "value", "Value is wrong"]);
    assert.equal(text.slice(at.place.from, at.place.to), '"[steps.outline.output]"');
    assert.equal(text.split("\n")[at.line - 1]?.trim(), '"value": "[steps.outline.output]",');
    const lacking = toProblem(text, { field: "content.steps[3].prompt", reason: "is required" });
    assert.equal(text.slice(lacking.place.from, lacking.place.to), "{");
    const broken = toProblem('{"a":1,,}', {
      field: "content",
      reason: "is not valid JSON: see line 1, column 8",
    });
    assert.deepEqual([broken.stepId, broken.place], [null, { from: 7, to: 8 }]);
  });
});
