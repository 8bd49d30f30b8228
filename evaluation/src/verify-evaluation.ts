import { canonicalJson } from "./canonical-json.ts";
import {
  type CosineAnswer,
  comparesEmbeddings,
  isRelevance,
  listReferences,
} from "./embedding-assertions.ts";
import { gradeOutput } from "./grade.ts";
import { type JsonSchema, validateValue } from "./json-schema.ts";
import { listJudgedAssertions, toRubricsText } from "./judge-prompt.ts";
import {
  isAnswerTo,
  JUDGMENT_WITHOUT_OUTPUT,
  type JudgeAnswer,
  type JudgedOutcome,
  judgeCase,
} from "./judgment.ts";
import { type EvaluatedColumn, type EvaluatedRun, type ModelScore, scoreModels } from "./score-models.ts";
import type { Assertion, TestCase } from "./test-case.ts";
import { checkTestCases } from "./validate.ts";

/** A key of a JSON Web Key Set (RFC 7517). */
export interface PublicKey {
  kid?: string;
  kty?: string;
  crv?: string;
  x?: string;
}

/** The file that `GET /evaluations/{evaluationId}/proof` returns. */
export interface EvaluationProofFile {
  statement: string;
  receipts: (string | null)[];
  /** Null: a case is hidden. Absent in the first proofs, whose hashes of test set and rubrics had no salt. */
  testSetSalt?: string | null;
  cases: { index: number; salt: string; case: Record<string, unknown> }[];
  outputs: { column: number; case: number; repeat: number; salt: string; output: unknown }[];
  keysUrl: string;
}

interface SignedRun extends EvaluatedRun {
  repeat: number;
  step: { id: string; item: number };
  status: "completed" | "failed";
  score: number | null;
  verdicts: { type: string; isPassed: boolean; score: number }[];
  outputHash: string | null;
  judgment?: SignedJudgment | null;
}

interface SignedJudgment {
  outcome: JudgedOutcome;
  score: number | null;
  /** What the judge was asked, in the order of `listJudgedAssertions`; none: the run gave no output. */
  calls: {
    /** Its step in the receipt of the judge's column; null: the output was too long for a judge. */
    step: { id: string; item: number } | null;
    cost: number | null;
    latencyMs: number | null;
    /** Null: undecided. */
    answer: JudgeAnswer | CosineAnswer | null;
    /** The call in which the judge wrote the questions of an `answer-relevance`. */
    questions?: { step: { id: string; item: number }; cost: number | null; latencyMs: number | null };
  }[];
}

interface SignedJudge {
  provider: string;
  model: string;
  isSandbox: boolean;
  rubricsHash?: string;
  /** In place of `rubricsHash` in the first proofs, without a salt. */
  rubricsSha256?: string;
  instructions: string;
  /** The model of its embeddings, and the instructions by which it writes questions. Absent: it compares none. */
  embedding?: { provider: string; model: string; isSandbox: boolean; instructions: string };
}

interface SignedCase {
  isHidden: boolean;
  hash: string;
  /** What a judge is asked about one of its outputs. Absent in the first proofs. */
  judgedAssertions?: number;
}

/** The signed content. */
export interface SignedEvaluation {
  iss: string;
  evaluation: { id: string; repeats: number; createdAt: string; completedAt: string; prices: string };
  product: { id: string; version: string; contentSha256: string };
  testSet: { hash?: string; sha256?: string; cases: SignedCase[] };
  /** Absent: nothing was judged. */
  judge?: SignedJudge;
  columns: (EvaluatedColumn & {
    executionId: string | null;
    receiptSha256: string | null;
    /** Of a judge: the index of the column whose outputs it judged. */
    judgedColumn?: number;
    /** In place of `judgedColumn` in the first proofs. */
    judges?: number;
  })[];
  results: SignedRun[];
  models: ModelScore[];
}

export interface EvaluationVerification {
  /** What does not fit, in sentences; none: every number follows from the signed results. */
  problems: string[];
  /** Null: the signature is not valid. */
  evaluation: SignedEvaluation | null;
  /** Runs whose verdict was computed again from their published text. */
  regraded: number;
  /** Runs of hidden cases: their verdicts are the marketplace's word. */
  hidden: number;
  /** Runs with a verdict of the judge. It follows from the judge's signed answers, which nothing but the model can repeat. */
  judged: number;
  /** Columns without a receipt, because their author deleted the executions: their costs and durations are the marketplace's word. */
  missingReceipts: number;
}

interface Receipt {
  execution: { id: string };
  product: { id: string; version: string; contentSha256: string | null };
  steps:
    | { id: string; item: number | null; estimatedCost: number | null; durationMs: number | null }[]
    | null;
}

const MAX_PROBLEMS = 100;
const SALT_BYTES = 32;
const KEYS_PATH = "/.well-known/stoa-receipts.json";
const PROOF_FIELDS = ["statement", "receipts", "testSetSalt", "cases", "outputs", "keysUrl"];
const CASE_FIELDS = ["index", "salt", "case"];
const OUTPUT_FIELDS = ["column", "case", "repeat", "salt", "output"];
/** The runs of a column belong to a generated workflow, which is no version of the product. Its steps pin the version. */
const GENERATED = "-draft";

/**
 * Verifies a proof with nothing but the public keys of its marketplace: the signatures (JWS, RFC 7515, with Ed25519, RFC 8037), the receipts
 * of the runs, the hashes of published texts, the verdicts of visible cases, and every number of the score card. What it cannot check must
 * not be in the file: readers would take it for verified. Never throws for bad content.
 */
export async function verifyEvaluation(
  proof: EvaluationProofFile,
  keys: readonly PublicKey[],
): Promise<EvaluationVerification> {
  const nothing = { evaluation: null, regraded: 0, hidden: 0, judged: 0, missingReceipts: 0 };
  try {
    const statement = await readSigned<SignedEvaluation>(proof.statement, "stoa-evaluation", keys);
    if (!statement)
      return { ...nothing, problems: ["The statement is not signed by a key of the marketplace."] };
    const verifier = new Verifier(proof, statement, keys);
    await verifier.run();
    const { problems, ...counts } = verifier;
    return { evaluation: statement, problems: problems.slice(0, MAX_PROBLEMS), ...counts };
  } catch (error) {
    return { ...nothing, problems: [`The file is no proof of an evaluation: ${(error as Error).message}.`] };
  }
}

class Verifier {
  readonly problems: string[] = [];
  regraded = 0;
  hidden = 0;
  judged = 0;
  missingReceipts = 0;
  readonly #proof: EvaluationProofFile;
  readonly #statement: SignedEvaluation;
  readonly #keys: readonly PublicKey[];

  constructor(proof: EvaluationProofFile, statement: SignedEvaluation, keys: readonly PublicKey[]) {
    this.#proof = proof;
    this.#statement = statement;
    this.#keys = keys;
  }

  async run(): Promise<void> {
    this.#checkFields();
    this.#checkCompleteness();
    await this.#checkReceipts();
    const cases = await this.#readCases();
    await this.#checkResults(cases);
    await this.#checkJudge(cases);
    this.#checkScores();
  }

  #checkFields(): void {
    const { cases, outputs, keysUrl } = this.#proof;
    this.#checkNames(this.#proof, PROOF_FIELDS, "");
    for (const [index, one] of cases.entries()) this.#checkNames(one, CASE_FIELDS, `cases.${index}.`);
    for (const [index, one] of outputs.entries()) this.#checkNames(one, OUTPUT_FIELDS, `outputs.${index}.`);
    if (keysUrl !== this.#statement.iss + KEYS_PATH)
      this.problems.push("keysUrl is not the address of the keys of the marketplace that signed.");
  }

  #checkNames(part: object, names: readonly string[], path: string): void {
    for (const name of Object.keys(part))
      if (!names.includes(name)) this.problems.push(`The field ${path}${name} is no part of a proof.`);
  }

  /** Each case ran on each model as often as the card says: none is left out. */
  #checkCompleteness(): void {
    const { columns, testSet, results, evaluation } = this.#statement;
    const judged = columns.filter(({ kind }) => kind !== "judge");
    const expected = judged.length * testSet.cases.length * evaluation.repeats;
    const places = new Set(results.map(placeOf));
    if (places.size !== results.length) this.problems.push("A run is listed twice.");
    if (places.size !== expected)
      this.problems.push(`${expected} runs are expected, and ${places.size} are listed.`);
    const isKnown = (run: SignedRun) =>
      judged.includes(columns[run.column]!) &&
      testSet.cases[run.case] !== undefined &&
      run.repeat >= 0 &&
      run.repeat < evaluation.repeats;
    if (!results.every(isKnown))
      this.problems.push("A run is of no model, case or repeat of the evaluation.");
  }

  async #checkReceipts(): Promise<void> {
    const { columns, product, results } = this.#statement;
    const { receipts } = this.#proof;
    for (let index = columns.length; index < receipts.length; index++)
      this.problems.push(`Receipt ${index + 1} is of no model of the evaluation.`);
    for (const [index, column] of columns.entries()) {
      const receipt = receipts[index];
      const name = `Receipt ${index + 1}`;
      if (receipt === null || receipt === undefined) {
        this.missingReceipts++;
        if (receipt !== column.receiptSha256) this.problems.push(`${name} is missing.`);
        continue;
      }
      if ((await sha256(receipt)) !== column.receiptSha256) {
        this.problems.push(`${name} is another one than the evaluation names.`);
        continue;
      }
      const content = await readSigned<Receipt>(receipt, "stoa-run-receipt", this.#keys);
      if (!content) {
        this.problems.push(`${name} is not signed by a key of the marketplace.`);
        continue;
      }
      if (content.execution.id !== column.executionId) this.problems.push(`${name} is of another execution.`);
      if (content.product.id !== product.id || content.product.version !== product.version + GENERATED)
        this.problems.push(`${name} is of another product or version.`);
      this.#checkSteps(
        name,
        content,
        column.kind === "judge"
          ? results.filter(({ column: of }) => of === judgedColumnOf(column)).flatMap(listJudgeCalls)
          : results.filter(({ column: of }) => of === index).map((run) => ({ ...run, title: nameOf(run) })),
      );
    }
  }

  #checkSteps(name: string, { steps }: Receipt, calls: SignedCall[]): void {
    const known = new Map((steps ?? []).map((step) => [`${step.id} ${step.item}`, step]));
    const used = new Set<string>();
    for (const { step: ref, cost, latencyMs, title } of calls) {
      const key = `${ref.id} ${ref.item}`;
      const step = known.get(key);
      if (!step) this.problems.push(`${name} has no ${title}.`);
      else if (used.has(key)) this.problems.push(`${name} has one step for ${title} and another run.`);
      else if (
        (cost !== null && step.estimatedCost !== cost) ||
        (latencyMs !== null && step.durationMs !== latencyMs)
      )
        this.problems.push(`${name} has another cost or duration for ${title}.`);
      used.add(key);
    }
  }

  /** The visible cases by their index. */
  async #readCases(): Promise<Map<number, TestCase>> {
    const { cases: signed, hash, sha256: digest } = this.#statement.testSet;
    const read = new Map<number, TestCase>();
    for (const { index, salt, case: content } of this.#proof.cases) {
      const known = signed[index];
      if (read.has(index)) this.problems.push(`Case ${index + 1} is listed twice.`);
      const isTrue =
        known !== undefined && !known.isHidden && (await hmac(salt, canonicalJson(content))) === known.hash;
      const checked = checkTestCases([content]);
      if (!isTrue || !("cases" in checked))
        this.problems.push(`Case ${index + 1} is not the one that was signed.`);
      else if (checked.cases[0]) read.set(index, checked.cases[0]);
    }
    const missing = signed.flatMap(({ isHidden }, index) => (isHidden || read.has(index) ? [] : [index + 1]));
    if (missing.length > 0) this.problems.push(`The visible cases ${missing.join(", ")} are missing.`);
    const isWhole = signed.every(({ isHidden }) => !isHidden) && missing.length === 0;
    const all = this.#proof.cases.toSorted((a, b) => a.index - b.index).map((one) => one.case);
    const ownDigest = await sha256(canonicalJson(all));
    if (isWhole && !(digest === undefined ? await this.#isSalted(hash, ownDigest) : digest === ownDigest))
      this.problems.push("The test set has another hash than the evaluation names.");
    this.#checkSalt();
    return read;
  }

  /** A salt that no hash can confirm. */
  #checkSalt(): void {
    const { testSet, judge } = this.#statement;
    const { testSetSalt } = this.#proof;
    const isSalted = testSet.hash !== undefined || judge?.rubricsHash !== undefined;
    if (!isSalted && testSetSalt !== undefined)
      this.problems.push("testSetSalt must be absent: no hash of this proof has a salt.");
    if (isSalted && testSetSalt !== null && testSet.cases.some(({ isHidden }) => isHidden))
      this.problems.push("testSetSalt must be null: a case is hidden, so no hash can confirm it.");
  }

  /** Whether the hash is that of a text under the salt of the test set. */
  async #isSalted(hash: string | undefined, text: string): Promise<boolean> {
    const { testSetSalt } = this.#proof;
    return typeof testSetSalt === "string" && (await hmac(testSetSalt, text)) === hash;
  }

  async #checkResults(cases: ReadonlyMap<number, TestCase>): Promise<void> {
    const outputs = this.#readOutputs();
    for (const run of this.#statement.results) {
      const testCase = cases.get(run.case);
      if (!testCase) {
        this.hidden++;
        continue;
      }
      if (run.outputHash === null) {
        if (run.status === "completed") this.#regrade(run, testCase, null);
        else if (run.isPassed === true) this.problems.push(`${nameOf(run)} passed although it failed.`);
        continue;
      }
      const found = outputs.get(placeOf(run));
      const text = typeof found?.output === "string" ? found.output : canonicalJson(found?.output ?? null);
      if (!found || (await hmac(found.salt, text)) !== run.outputHash)
        this.problems.push(`The output of ${nameOf(run)} is not the one that was signed.`);
      else this.#regrade(run, testCase, found.output);
    }
  }

  /** The outputs by their runs. */
  #readOutputs(): Map<string, EvaluationProofFile["outputs"][number]> {
    const { results, testSet } = this.#statement;
    const published = results.filter(
      (run) => run.outputHash !== null && testSet.cases[run.case]?.isHidden === false,
    );
    const places = new Set(published.map(placeOf));
    const outputs = new Map<string, EvaluationProofFile["outputs"][number]>();
    for (const one of this.#proof.outputs) {
      const isPlace = [one.column, one.case, one.repeat].every(Number.isInteger);
      const place = placeOf(one);
      if (!isPlace || !places.has(place))
        this.problems.push(`The output of ${nameOf(one)} belongs to no run with a published output.`);
      else if (outputs.has(place)) this.problems.push(`The output of ${nameOf(one)} is listed twice.`);
      else outputs.set(place, one);
    }
    return outputs;
  }

  #regrade(run: SignedRun, testCase: TestCase, output: unknown): void {
    const graded = gradeOutput(
      testCase,
      { output, costUsd: run.cost, latencyMs: run.latencyMs },
      {
        validateSchema: (schema, value) =>
          validateValue(schema as JsonSchema, value).map(({ reason }) => reason),
      },
    );
    const verdicts = graded.assertions.map(({ type, isPassed, score }) => ({ type, isPassed, score }));
    this.regraded++;
    if (graded.isPassed !== run.isPassed || !isAlike(verdicts, run.verdicts))
      this.problems.push(`${nameOf(run)} has another verdict than its output gives.`);
  }

  async #checkJudge(cases: ReadonlyMap<number, TestCase>): Promise<void> {
    const { judge, columns, results, testSet } = this.#statement;
    const judges = columns.filter(({ kind }) => kind === "judge");
    if (!judge) {
      if (judges.length > 0 || results.some(({ judgment }) => judgment))
        this.problems.push("Runs were judged, and the judge is not named.");
      return;
    }
    this.#checkJudgeColumns(judge);
    if (cases.size === testSet.cases.length && !(await this.#hasRubrics(judge, inOrder(cases))))
      this.problems.push("The rubrics have another hash than the evaluation names.");
    const judgedAssertions = this.#countJudgedAssertions(judge, cases);
    if (judge.embedding && cases.size === testSet.cases.length && !comparesAny(judge, cases))
      this.problems.push("An embedding model is named, and no case compares embeddings.");
    if (judgedAssertions.every((count) => count === 0))
      this.problems.push("A judge is named, and no case has anything to judge.");
    const judgedCases = new Set(results.filter(({ judgment }) => judgment).map((run) => run.case));
    for (const run of results) {
      const asked = judgedAssertions[run.case];
      const isJudged = asked === undefined ? judgedCases.has(run.case) : asked > 0;
      if (isJudged !== Boolean(run.judgment))
        this.problems.push(`${nameOf(run)} has ${isJudged ? "no" : "a"} verdict of the judge.`);
      else if (run.judgment)
        this.#rejudge(run, run.judgment, { judge, testCase: cases.get(run.case), asked });
    }
  }

  async #hasRubrics(
    { rubricsHash, rubricsSha256, ...judge }: SignedJudge,
    cases: TestCase[],
  ): Promise<boolean> {
    const text = toRubricsText(judge, cases);
    return rubricsSha256 === undefined
      ? this.#isSalted(rubricsHash, text)
      : rubricsSha256 === (await sha256(text));
  }

  /** How much a judge is asked about an output of each case; undefined: a hidden case of a proof that does not say so. */
  #countJudgedAssertions(judge: SignedJudge, cases: ReadonlyMap<number, TestCase>): (number | undefined)[] {
    return this.#statement.testSet.cases.map(({ judgedAssertions: signed }, index) => {
      const testCase = cases.get(index);
      if (!testCase) return signed;
      const { length } = listJudgedAssertions(testCase, judge);
      if (signed !== undefined && signed !== length)
        this.problems.push(`Case ${index + 1} has another number of judged assertions than was signed.`);
      return length;
    });
  }

  /** Each column has one judge, and all are the model that the card names. */
  #checkJudgeColumns({ provider, model, isSandbox }: SignedJudge): void {
    const { columns } = this.#statement;
    for (const [index, { kind }] of columns.entries()) {
      const judges = columns.filter((other) => other.kind === "judge" && judgedColumnOf(other) === index);
      if (judges.length !== (kind === "judge" ? 0 : 1))
        this.problems.push(`Model ${index + 1} has ${judges.length} judges.`);
    }
    const isOther = columns.some(
      (one) =>
        one.kind === "judge" &&
        (one.provider !== provider || one.model !== model || one.isSandbox !== isSandbox),
    );
    if (isOther) this.problems.push("The judge is another model than the evaluation names.");
  }

  /** The verdict of a hidden case cannot be computed: its thresholds are hidden, too. */
  #rejudge(
    run: SignedRun,
    { outcome, score, calls }: SignedJudgment,
    {
      judge,
      testCase,
      asked,
    }: { judge: SignedJudge; testCase: TestCase | undefined; asked: number | undefined },
  ): void {
    this.judged++;
    const all = testCase
      ? listJudgedAssertions(testCase, judge).map((assertion) => ({ assertion, input: testCase.input }))
      : [];
    const isReadable = calls.every((call, at) => isReadableCall(judge, all[at], call));
    const hasOutput = run.status === "completed";
    const replies = calls.map(({ answer }) => ({ answer, reason: "" }));
    const expected = !hasOutput
      ? JUDGMENT_WITHOUT_OUTPUT
      : testCase
        ? judgeCase(testCase, replies, judge)
        : null;
    const isComplete = !hasOutput ? calls.length === 0 : asked === undefined || calls.length === asked;
    const fits = !expected || isAlike([expected.outcome, expected.score], [outcome, score]);
    if (!isReadable || !isComplete || !fits)
      this.problems.push(`${nameOf(run)} has another verdict than the judge's answers give.`);
  }

  #checkScores(): void {
    const { columns, results, models, evaluation } = this.#statement;
    if (!isAlike(scoreModels(columns, results, evaluation), models))
      this.problems.push("The numbers of the score card do not follow from the verdicts.");
  }
}

interface SignedCall {
  step: { id: string; item: number };
  cost: number | null;
  latencyMs: number | null;
  /** What a problem names. */
  title: string;
}

const judgedColumnOf = ({ judgedColumn, judges }: SignedEvaluation["columns"][number]) =>
  judgedColumn ?? judges;

/** With the calls for questions, which are steps of the same receipt. */
const listJudgeCalls = (run: SignedRun): SignedCall[] =>
  (run.judgment?.calls ?? []).flatMap(({ step, questions, ...call }) => [
    ...(step ? [{ ...call, step, title: `the judge's call for ${nameOf(run)}` }] : []),
    ...(questions ? [{ ...questions, title: `the judge's questions for ${nameOf(run)}` }] : []),
  ]);

/** An assertion of a visible case, with the input that its texts name. */
interface AskedAssertion {
  assertion: Assertion;
  input: Record<string, unknown>;
}

/** Cosines need a named model and their steps: of an `answer-relevance` also that which gave its questions. */
function isReadableCall(
  { embedding }: SignedJudge,
  asked: AskedAssertion | undefined,
  { answer, step, questions }: SignedJudgment["calls"][number],
): boolean {
  if (questions && (!step || !embedding)) return false;
  if (asked && step && isRelevance(asked.assertion) !== Boolean(questions)) return false;
  if (answer === null) return true;
  if (!isAnswerTo(asked?.assertion, answer)) return false;
  if (!("cosines" in answer)) return true;
  return Boolean(embedding && step) && (!asked || isOfAllReferences(asked, answer));
}

const isOfAllReferences = ({ assertion, input }: AskedAssertion, { cosines }: CosineAnswer): boolean =>
  isRelevance(assertion) || cosines.length === listReferences(assertion, input).length;

const comparesAny = (judge: SignedJudge, cases: ReadonlyMap<number, TestCase>): boolean =>
  [...cases.values()].some((one) => listJudgedAssertions(one, judge).some(comparesEmbeddings));

const inOrder = (cases: ReadonlyMap<number, TestCase>): TestCase[] =>
  [...cases].toSorted(([a], [b]) => a - b).map(([, testCase]) => testCase);

type Place = Pick<SignedRun, "column" | "case" | "repeat">;

const placeOf = (run: Place): string => `${run.column} ${run.case} ${run.repeat}`;

const nameOf = (run: Place): string =>
  `run ${run.repeat + 1} of case ${run.case + 1} on model ${run.column + 1}`;

const TOLERANCE = 1e-9;

/** Equal but for the last digits of numbers, and for members that are undefined. */
function isAlike(a: unknown, b: unknown): boolean {
  if (typeof a === "number" && typeof b === "number") return Math.abs(a - b) <= TOLERANCE;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b;
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...names].every((name) =>
    isAlike((a as Record<string, unknown>)[name], (b as Record<string, unknown>)[name]),
  );
}

const encode = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);

/** null: these bytes have another text, so that somebody changed this one in characters or bits that decoding skips. */
function fromBase64Url(text: string): Uint8Array<ArrayBuffer> | null {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const ownText = btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  if (ownText !== text) return null;
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

const toHex = (bytes: ArrayBuffer): string =>
  [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");

const sha256 = async (text: string): Promise<string> =>
  toHex(await crypto.subtle.digest("SHA-256", encode(text)));

/** null: the salt has another length, and HMAC pads short ones with zeros: several would give one hash. */
async function hmac(salt: string, text: string): Promise<string | null> {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const bytes = fromBase64Url(salt);
  if (!bytes || bytes.length !== SALT_BYTES) return null;
  const key = await crypto.subtle.importKey("raw", bytes, algorithm, false, ["sign"]);
  return toHex(await crypto.subtle.sign("HMAC", key, encode(text)));
}

/** The payload of a JWS; null: it is of another type, or no key signed it. */
async function readSigned<Content>(
  jws: string,
  type: string,
  keys: readonly PublicKey[],
): Promise<Content | null> {
  const [header = "", payload = "", signature = "", ...rest] = jws.split(".");
  const [headerBytes, payloadBytes, signatureBytes] = [header, payload, signature].map(fromBase64Url);
  if (rest.length > 0 || !headerBytes || !payloadBytes || !signatureBytes) return null;
  const { alg, kid, typ } = JSON.parse(new TextDecoder().decode(headerBytes));
  const jwk = keys.find((key) => key.kid === kid && key.kty === "OKP" && key.crv === "Ed25519");
  const keyBytes = fromBase64Url(jwk?.x ?? "");
  if (alg !== "EdDSA" || typ !== type || !keyBytes?.length) return null;
  const key = await crypto.subtle.importKey("raw", keyBytes, "Ed25519", false, ["verify"]);
  const isTrue = await crypto.subtle.verify("Ed25519", key, signatureBytes, encode(`${header}.${payload}`));
  return isTrue ? JSON.parse(new TextDecoder().decode(payloadBytes)) : null;
}
