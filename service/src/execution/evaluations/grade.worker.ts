/** Runs in a worker thread of grading-thread.ts. */

import { parentPort } from "node:worker_threads";
import { gradeOutput } from "@stoa/evaluation";
import { type JsonSchema, validateValue } from "@stoa/evaluation/json-schema";
import { required } from "../../core/required.ts";
import type { GradingRequest } from "./grading-thread.ts";

const port = required(parentPort, "the port of the thread that started this one");
port.on("message", ({ testCase, run }: GradingRequest) =>
  port.postMessage(gradeOutput(testCase, run, { validateSchema })),
);

const validateSchema = (schema: unknown, value: unknown): string[] =>
  validateValue(schema as JsonSchema, value).map(({ reason }) => reason);
