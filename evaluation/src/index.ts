export * from "./test-case.ts";
