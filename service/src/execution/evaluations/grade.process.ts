/** A process of grading-process.ts, which ends when its parent closes the channel. */

import { gradeOutput } from "@stoa/evaluation/grade";
import { type JsonSchema, validateValue } from "@stoa/evaluation/json-schema";
import type { GradingRequest } from "./grading-process.ts";

process.on("message", ({ testCase, run }: GradingRequest) =>
  process.send?.(gradeOutput(testCase, run, { validateSchema })),
);

const validateSchema = (schema: unknown, value: unknown): string[] =>
  validateValue(schema as JsonSchema, value).map(({ reason }) => reason);
