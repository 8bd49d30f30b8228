/**
 * Loaded before each test file: properties draw the same cases in every run, so that whoever sees one fail can repeat it, and a
 * change is not blamed for what chance found. `STOA_TEST_SEED=<integer>` draws others, to look for more.
 */
import fc from "fast-check";

fc.configureGlobal({ seed: Number(process.env["STOA_TEST_SEED"] ?? 20260615) });
