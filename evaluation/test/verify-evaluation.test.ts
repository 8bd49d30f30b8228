import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { sampleOf } from "../../service/test/full-size.ts";
import { type EvaluationProofFile, type PublicKey, verifyEvaluation } from "../src/verify-evaluation.ts";
import { changesOf } from "./proof-changes.ts";

/** Proofs of the first form: without the number of judged assertions and with rubrics under no salt. */
const {
  keys,
  visible,
  hidden,
}: { keys: PublicKey[]; visible: EvaluationProofFile; hidden: EvaluationProofFile } = JSON.parse(
  await readFile(new URL("first-proofs.json", import.meta.url), "utf8"),
);

test("proofs of the first form: valid, with visible and with hidden rubrics", async () => {
  for (const [proof, judged] of [
    [visible, 4],
    [hidden, 4],
  ] as const) {
    const verified = await verifyEvaluation(proof, keys);
    assert.deepEqual([verified.problems, verified.judged, verified.missingReceipts], [[], judged, 0]);
  }
});

test("a proof of the first form that was changed: refused", async () => {
  const changed = structuredClone(visible);
  changed.cases[1]!.case["assert"] = [{ type: "llm-rubric", value: "Anything" }];
  assert.match(
    (await verifyEvaluation(changed, keys)).problems.join("\n"),
    /Case 2 is not the one that was signed/,
  );
  const [header, payload, signature] = visible.statement.split(".");
  const text = Buffer.from(payload!, "base64url")
    .toString()
    .replace(/"rubricsSha256":"./, '"rubricsSha256":"g');
  const statement = [header, Buffer.from(text).toString("base64url"), signature].join(".");
  assert.match((await verifyEvaluation({ ...visible, statement }, keys)).problems.join("\n"), /not signed/);
});

test("a proof of the first form with anything changed, removed or added: refused", async () => {
  for (const [at, proof] of [visible, hidden].entries()) {
    const accepted: string[] = [];
    for (const { name, proof: changed } of sampleOf([...changesOf(proof)], at, 7))
      if ((await verifyEvaluation(changed, keys)).problems.length === 0) accepted.push(name);
    assert.deepEqual(accepted, []);
  }
});
