import { cpuBetween, cpuOf, cpuOfFamily } from "../cpu.ts";
import { type LoadResult, runLoad } from "../load.ts";
import { DIFFERENT, productAt } from "./products.ts";
import { type Case, cases, type Request } from "./queries.ts";
import type { CheckedPage, SeenProduct, Target } from "./system.ts";

const CONNECTIONS = 10;
/** Above this time for one answer, parallel requests would only wait for each other: all are sent one at a time. */
const SLOW_MS = 3_000;
const WARM_UP_SECONDS = 1;
const SECONDS = 3;
/** Requests of each connection per measurement. */
const FEWEST = 2;
const MAX_REQUESTS = 30_000;

export interface Measured extends LoadResult {
  nodeMs: number;
  databaseMs: number;
}

/** The result of one case for one target. */
export interface Result {
  way: string;
  /** A description of the first answer. */
  shows: string;
  /** The first answer, for inspection. */
  answer: string;
  rounds: Measured[];
}

export interface CaseResult {
  size: number;
  name: string;
  connections: number;
  results: Result[];
}

/** Measures all targets of a case in turn in each pass, so that all see the same state of the machine. */
export async function compare(targets: Target[], size: number, rounds: number): Promise<CaseResult[]> {
  const found: CaseResult[] = [];
  for (const kind of cases) {
    found.push(await compareCase(kind, targets, size, rounds));
    console.log(describe(found.at(-1)!));
  }
  return found;
}

interface Runner {
  target: Target;
  result: Result;
  /** The duration of one answer. */
  ms: number;
  requestsFor(count: number): Request[];
}

async function compareCase(kind: Case, targets: Target[], size: number, rounds: number): Promise<CaseResult> {
  const runners: Runner[] = [];
  for (const target of targets) {
    const runner = await probe(kind, target);
    if (runner) runners.push(runner);
  }
  const connections = Math.max(...runners.map(({ ms }) => ms)) > SLOW_MS ? 1 : CONNECTIONS;
  const amounts = new Map<Runner, number>();
  for (const runner of runners) amounts.set(runner, await warmUp(runner, connections));
  for (let round = 0; round < rounds; round++) {
    for (const [runner, amount] of amounts) {
      runner.result.rounds.push(await measure(runner, amount, connections));
    }
  }
  return { size, name: kind.name, connections, results: runners.map(({ result }) => result) };
}

/** Checks answers before the measurement with two queries; the first one warms the service up. */
async function probe(kind: Case, target: Target): Promise<Runner | null> {
  const questions = kind.requestsOf(target.asks);
  if (questions.length === 0) return null;
  const requestsFor = (count: number) =>
    Array.from({ length: count }, (_, at) => questions[at % questions.length]!());
  const [first, second] = requestsFor(2);
  const { sight, answer } = await askOnce(target, first!);
  const { ms } = await askOnce(target, second!);
  const result = { way: target.name, shows: showing(sight), answer, rounds: [] };
  return { target, result, ms, requestsFor };
}

async function askOnce(target: Target, { method, path, headers, body }: Request) {
  const begun = performance.now();
  const init = { method, ...(headers && { headers }), ...(body && { body }) };
  const reply = await fetch(`${target.server.origin}${path}`, init);
  const answer = await reply.text();
  const ms = performance.now() - begun;
  const asked = `${target.name} was asked ${path} ${body ?? ""}`;
  if (!reply.ok) throw new Error(`${asked} and answered ${reply.status}: ${answer}`);
  const sight = target.look(answer);
  const wrong = sight.products.find((product) => !isOurs(product));
  if (wrong) throw new Error(`${asked} and showed what it was not expected: ${JSON.stringify(wrong)}`);
  if (sight.products.length === 0) throw new Error(`${asked} and showed nothing: ${answer}`);
  return { sight, ms, answer };
}

/** Whether the product equals the generated one with its title. */
function isOurs({ title, description, priceMinor, labels }: SeenProduct): boolean {
  const [, original, copy] = /#(\d+)(?: v(\d+))?$/.exec(title) ?? [];
  const product = productAt(Number(original) + DIFFERENT * Number(copy ?? 0));
  const expected = [product.category, ...product.tags].toSorted().join();
  const shown = labels?.toSorted().join() ?? expected;
  return description === product.description && priceMinor === product.priceMinor && shown === expected;
}

/** Returns the number of requests per measurement. */
async function warmUp(runner: Runner, connections: number): Promise<number> {
  if (connections === 1 && runner.ms > SLOW_MS) return FEWEST;
  const likely = Math.ceil((WARM_UP_SECONDS * 1000) / runner.ms);
  const { perSecond } = await load(runner, Math.max(likely, connections), connections);
  const amount = Math.ceil(perSecond * SECONDS);
  return Math.min(Math.max(amount, FEWEST * connections), MAX_REQUESTS);
}

/** Deals the queries out, so that no two connections send the same one at once. */
function load({ target, requestsFor }: Runner, amount: number, connections: number): Promise<LoadResult> {
  const requests = requestsFor(amount);
  const lanes = Array.from({ length: connections }, (_, lane) =>
    requests.filter((_, at) => at % connections === lane),
  );
  return runLoad({ origin: target.server.origin, amount, connections, lanes });
}

async function measure(runner: Runner, amount: number, connections: number): Promise<Measured> {
  const { pid, postmaster } = runner.target.server;
  const before = { node: cpuOf([pid]), database: cpuOfFamily(postmaster) };
  const result = await load(runner, amount, connections);
  return {
    ...result,
    nodeMs: cpuBetween(before.node, cpuOf([pid])) / result.requests,
    databaseMs: (cpuOfFamily(postmaster) - before.database) / result.requests,
  };
}

const showing = ({ products, found }: CheckedPage) => `${products.length} of ${found ?? "–"}`;

const describe = ({ size, name, results }: CaseResult) =>
  `${size} ${name}: ${results
    .map(({ way, rounds, shows }) => {
      const rates = rounds.map(({ perSecond }) => perSecond.toFixed(1)).join(" ");
      return `${way} ${rates}/s (${shows})`;
    })
    .join("; ")}`;
