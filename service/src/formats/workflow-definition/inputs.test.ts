import assert from "node:assert/strict";
import { test } from "node:test";
import { api } from "@stoa/contract";
import type { JsonSchema } from "@stoa/evaluation/json-schema";
import { checkInput, toVariables } from "./inputs.ts";

const input: JsonSchema = {
  type: "object",
  required: ["topic", "count"],
  properties: {
    topic: { type: "string", description: "What it is about", maxLength: 500 },
    tone: { type: "string", enum: ["kind", "dry"], default: "kind" },
    count: { type: "integer", title: "How many", minimum: 1, default: 3 },
    parts: { type: "array", items: { type: "string" } },
    note: true,
  },
};

test("toVariables: one variable for each input; other types as JSON", () => {
  assert.deepEqual(toVariables(input), [
    { name: "topic", required: true, description: "What it is about", maxLength: 500 },
    { name: "tone", required: false, default: "kind", enum: ["kind", "dry"] },
    { name: "count", required: false, description: "How many (an integer)", default: "3" },
    { name: "parts", required: false, description: "(a list)" },
    { name: "note", required: false },
  ]);
});

test("toVariables, any schema: variables that the contract accepts", () => {
  const great: JsonSchema = {
    type: "object",
    properties: {
      a: { type: ["integer", "null"], description: "😀".repeat(400) },
      b: { default: "x".repeat(40_000), maxLength: 100_000 },
      c: { enum: Array.from({ length: 200 }, (_, index) => index), maxLength: 0 },
      d: { enum: ["x".repeat(2_000)], default: { deep: [1] } },
    },
  };
  const variables = toVariables(great);
  assert.deepEqual(api.products.update.request.body.parse({ variables }), { variables });
});

test("checkInput: given values, and defaults for the rest", () => {
  assert.deepEqual(checkInput(input, { topic: "cats", tone: "dry" }), {
    input: { topic: "cats", tone: "dry", count: 3 },
  });
});

test("checkInput, several issues: reported by path", () => {
  assert.deepEqual(checkInput(input, { count: 0, parts: ["a", 1], tone: "rude" }), {
    problems: [
      { field: "input.topic", reason: "is required" },
      { field: "input.tone", reason: "must be one of kind, dry" },
      { field: "input.count", reason: "must be at least 1" },
      { field: "input.parts[1]", reason: "must be a string" },
    ],
  });
});
