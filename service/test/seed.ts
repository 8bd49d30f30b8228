/**
 * Loaded before each test file. A fixed seed makes every run draw the same cases, so that failures are reproducible.
 * `STOA_TEST_SEED=<integer>` draws others.
 */
import fc from "fast-check";

fc.configureGlobal({ seed: Number(process.env["STOA_TEST_SEED"] ?? 20260615) });
