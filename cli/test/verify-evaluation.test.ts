import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { verifyEvaluation } from "@stoa/evaluation";
import { changesOf } from "@stoa/evaluation/test/proof-changes.ts";
import {
  sandboxRequest,
  startEvaluation,
  storeTestSet,
  untilEvaluated,
} from "@stoa/service/test/evaluations.ts";
import { createProduct } from "@stoa/service/test/factories.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { startWorker } from "@stoa/service/test/workflows.ts";
import { type CommandLine, openCommandLine } from "./stoa.ts";

let market: Market;
let seller: Client;
let stoa: CommandLine;
let worker: ReturnType<typeof startWorker>;
// biome-ignore lint/suspicious/noExplicitAny: a test changes it in every place
let proof: any;
let keys: string;
before(async () => {
  market = await openMarket({ now: () => new Date() });
  worker = startWorker(market);
  seller = await market.createUser();
  stoa = await openCommandLine({ origin: market.origin, key: seller.key });
  const productId = await createProduct(seller);
  await storeTestSet(seller, productId);
  const id = await startEvaluation(seller, productId);
  await untilEvaluated(market, seller, id);
  proof = (await seller.get(`/v1/evaluations/${id}/proof`)).body.data;
  keys = join(stoa.folder, "keys.json");
  await writeFile(keys, (await market.as(null).get("/.well-known/stoa-receipts.json")).text);
});
after(async () => {
  await worker.stop();
  await stoa.remove();
  await market.close();
});

async function verify(content: unknown, ...more: string[]) {
  const file = join(stoa.folder, "proof.json");
  await writeFile(file, JSON.stringify(content));
  return stoa.run(["verify-evaluation", file, ...more]);
}

/** As the command does, and without a process for each of some hundred changes. */
async function refusesChanges(whole: typeof proof) {
  const { keys: published } = JSON.parse(await readFile(keys, "utf8"));
  assert.deepEqual((await verifyEvaluation(whole, published)).problems, []);
  const accepted: string[] = [];
  for (const { name, proof: changed } of changesOf(whole))
    if ((await verifyEvaluation(changed, published)).problems.length === 0) accepted.push(name);
  assert.deepEqual(accepted, []);
}

test("a proof with anything changed, removed or added: refused", async () => {
  await refusesChanges(proof);
});

test("a proof: valid with the keys of the service, and offline with a file of keys", async () => {
  const online = await verify({ success: true, data: proof });
  assert.equal(online.code, 0, online.stdout + online.stderr);
  assert.match(
    online.stdout,
    /^Signed by http:\S+: prod_\w+ version 1\.0\.0\nsandbox-echo \(practice provider\): 4 of 6 runs passed, 67 %/,
  );
  assert.match(online.stderr, /8 verdicts were computed again from their texts; 4 are of hidden tests/);
  const offline = await verify(proof, "--keys", keys, "--json");
  assert.equal(offline.code, 0, offline.stderr);
  assert.deepEqual(JSON.parse(offline.stdout).problems, []);
});

test("a proof with a judge: its figures stand apart, and what cannot be computed again is named", async () => {
  const productId = await createProduct(seller);
  const assertions = [
    { type: "contains", value: "haiku" },
    { type: "llm-rubric", value: 'Names "rain"' },
  ];
  await storeTestSet(seller, productId, [
    { title: "Rain", input: { topic: "rain" }, assert: assertions },
    { title: "Snow", input: { topic: "snow" }, assert: assertions },
  ]);
  const request = { ...sandboxRequest, judge: { apiKeyId: "sandbox" } };
  const id = await startEvaluation(seller, productId, request);
  await untilEvaluated(market, seller, id);
  const judged = (await seller.get(`/v1/evaluations/${id}/proof`)).body.data;
  const { code, stdout, stderr } = await verify(judged, "--keys", keys);
  assert.equal(code, 0, stdout + stderr);
  assert.match(stdout, /\nsandbox-echo \(practice provider\): 4 of 4 runs passed, 100 %/);
  assert.match(
    stdout,
    /\n {2}judged by sandbox \(practice provider\): 2 of 4 runs passed, 50 % .*; without the product 50 % .*, 0 undecided\n/,
  );
  assert.match(stderr, /8 verdicts of the judge follow from its signed answers/);
  await refusesChanges(judged);
  judged.receipts[1] = null;
  const refused = await verify(judged, "--keys", keys);
  assert.deepEqual([refused.code, /Receipt 2 is missing/.test(refused.stdout)], [2, true]);
});

for (const [what, change, problem] of [
  [
    "another output",
    (p: typeof proof) => (p.outputs[0].output += "!"),
    /output of run 1 of case \d on model \d is not/,
  ],
  ["an output left out", (p: typeof proof) => p.outputs.pop(), /output of run .* is not/],
  [
    "another assertion",
    (p: typeof proof) => (p.cases[0].case.assert[0].value = "x"),
    /Case 1 is not the one/,
  ],
  ["a case left out", (p: typeof proof) => p.cases.shift(), /visible cases 1 are missing/],
  ["a receipt left out", (p: typeof proof) => (p.receipts[0] = null), /Receipt 1 is missing/],
  ["another receipt", (p: typeof proof) => p.receipts.reverse(), /Receipt 1 is another one/],
  [
    "an output of a hidden case",
    (p: typeof proof) => p.outputs.push({ ...p.outputs[0], case: 1 }),
    /output of run 1 of case 2 on model 1 belongs to no run with a published output/,
  ],
  [
    "an output twice",
    (p: typeof proof) => p.outputs.push({ ...p.outputs[0], output: "forged" }),
    /output of run 1 of case 1 on model 1 is listed twice/,
  ],
  [
    "one receipt more",
    (p: typeof proof) => p.receipts.push(p.receipts[0]),
    /Receipt 3 is of no model of the evaluation/,
  ],
  [
    "a salt of the test set",
    (p: typeof proof) => (p.testSetSalt = p.cases[0].salt),
    /testSetSalt must be null/,
  ],
  ["a case twice", (p: typeof proof) => p.cases.push(p.cases[0]), /Case 1 is listed twice/],
  ["other keys", (p: typeof proof) => (p.keysUrl = "http://forger.test/keys"), /keysUrl is not/],
  ["another field", (p: typeof proof) => (p.verified = true), /field verified is no part/],
  [
    "another field of an output",
    (p: typeof proof) => (p.outputs[0].verdict = "passed"),
    /field outputs\.0\.verdict is no part/,
  ],
  [
    "another payload",
    (p: typeof proof) => {
      const [header, payload, signature] = p.statement.split(".");
      const text = Buffer.from(payload, "base64url").toString().replace('"passed":4', '"passed":6');
      p.statement = `${header}.${Buffer.from(text).toString("base64url")}.${signature}`;
    },
    /not signed by a key of the marketplace/,
  ],
] as const) {
  test(`${what}: refused`, async () => {
    const changed = structuredClone(proof);
    change(changed);
    const { code, stdout } = await verify(changed, "--keys", keys);
    assert.equal(code, 2);
    assert.match(stdout, problem);
  });
}

test("keys of somebody else, and files that are no proof: refused with what to do", async () => {
  const foreign = join(stoa.folder, "foreign.json");
  await writeFile(foreign, JSON.stringify({ keys: [] }));
  const { code, stdout } = await verify(proof, "--keys", foreign);
  assert.deepEqual([code, /not signed by a key/.test(stdout)], [2, true]);
  for (const content of [null, [], { statement: 1 }, { data: { statement: "a.b.c" } }]) {
    const refused = await verify(content, "--keys", keys);
    assert.deepEqual([refused.code, /is no proof/.test(refused.stderr)], [1, true], refused.stderr);
  }
  const hostile = await verify({ statement: "%.%.%", receipts: [], cases: [], outputs: [] }, "--keys", keys);
  assert.deepEqual([hostile.code, /is no proof/.test(hostile.stdout)], [2, true]);
});
