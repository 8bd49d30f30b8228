import { cpuBetween, cpuOf } from "../cpu.ts";
import type { Options } from "../options.ts";
import { startPortkey } from "../peers/portkey.ts";
import { startScript } from "../processes.ts";
import {
  AT_ONCE,
  type CallPath,
  callBy,
  directly,
  type Load,
  throughPortkey,
  throughStoa,
} from "../prompt-calls.ts";
import { median, type Quantiles, quantilesOf } from "../quantile.ts";
import { comparedWithAim, ms, type Report } from "../report.ts";
import { openShop } from "../shop.ts";

const ROUNDS = 3;
const WARM_UP: Load = { model: AT_ONCE, atOnce: 32, amount: 1_000, spreadMs: 0, until: "end" };
const AIMS = { p50: 3, p99: 20, firstWord: 5 };

interface Case extends Load {
  name: string;
  aim: { p50: number; p99: number } | null;
}

/** The duration of a fast model. With a provider that answers at once, parallel calls would only show CPU time. */
const MODELS_TAKE_MS = 1_000;
const slowly = (atOnce: number, amount: number): Case => ({
  name: `${atOnce} at a time, of a provider that takes 1 s`,
  ...{ model: `after-${MODELS_TAKE_MS}`, atOnce, amount, spreadMs: MODELS_TAKE_MS, until: "end" },
  aim: AIMS,
});
const busily = (atOnce: number, amount: number): Case => ({
  name: `${atOnce} at a time, answered at once`,
  ...{ model: AT_ONCE, atOnce, amount, spreadMs: 0, until: "end", aim: null },
});
const CASES: Case[] = [
  { ...busily(1, 200), name: "one at a time, answered at once", aim: AIMS },
  slowly(32, 96),
  slowly(100, 300),
  busily(32, 400),
  busily(100, 400),
  {
    name: "the first word of a stream, one at a time",
    ...{ model: AT_ONCE, atOnce: 1, amount: 100, spreadMs: 0, until: "first word" },
    aim: { p50: AIMS.firstWord, p99: AIMS.p99 },
  },
];

/** Runs of a bought prompt, compared in turns with direct calls of the provider and with Portkey's gateway. */
export async function measureExecute(options: Options): Promise<Report> {
  const shop = await openShop(options);
  const [providerUrl] = await startScript(new URL("../ai-provider.ts", import.meta.url), []).waitForLine(
    /^http.*/,
  );
  const [buyer, productId] = [shop.buyers[0]!, shop.products[0]!];
  const portkey = await startPortkey();
  const ways = [
    directly(providerUrl!),
    await throughStoa(shop, shop, { buyer, productId }, providerUrl!),
    ...(portkey ? [throughPortkey(portkey, providerUrl!)] : []),
  ];
  for (const way of ways) await callBy(way, WARM_UP);
  const measured: Round[][] = [];
  for (const load of CASES) measured.push(await roundsOf(ways, load));
  return reportOf(ways, measured);
}

/** The results of each path, in order. */
type Round = (Quantiles & { perSecond: number; cpuMs: number })[];

async function roundsOf(ways: CallPath[], load: Load): Promise<Round[]> {
  const rounds: Round[] = [];
  for (let n = 0; n < ROUNDS; n++) {
    const round: Round = [];
    for (const way of ways) round.push(await measure(way, load));
    rounds.push(round);
  }
  return rounds;
}

async function measure(way: CallPath, load: Load): Promise<Round[number]> {
  const before = cpuOf(await way.processes());
  const { times, perSecond } = await callBy(way, load);
  const cpuMs = cpuBetween(before, cpuOf(await way.processes())) / load.amount;
  return { ...quantilesOf(times), perSecond, cpuMs };
}

function reportOf(ways: CallPath[], measured: Round[][]): Report {
  const rows = CASES.flatMap((load, at) => rowsOf(ways, load, measured[at]!));
  const peer = ways[2] ? "" : " Portkey's gateway could not be installed.";
  return {
    columns: [
      "calls",
      "way",
      "per second",
      "p50 ms",
      "p99 ms",
      "added p50",
      "added p99",
      "CPU ms",
      "aim",
      "met",
    ],
    rows,
    notes: [
      `${ROUNDS} rounds in turn, medians; what is added is the difference to the direct calls of the same round. Portkey's gateway relays, Stoa also checks what was bought, opens the key, and writes each run down before and after.${peer} CPU is that of a call in all processes between the caller and the provider, the database's included.`,
    ],
  };
}

function rowsOf(ways: CallPath[], { name, aim }: Case, rounds: Round[]): string[][] {
  return ways.map((way, at) => {
    const of = (field: keyof Round[number]) => median(rounds.map((round) => round[at]![field]));
    const added = (field: "p50" | "p99") =>
      median(rounds.map((round) => round[at]![field] - round[0]![field]));
    const cells = [of("perSecond").toFixed(0), ms(of("p50")), ms(of("p99"))];
    if (at === 0) return [name, way.name, ...cells, "", "", "", "", ""];
    const isMet = aim !== null && added("p50") <= aim.p50 && added("p99") <= aim.p99;
    const judged =
      at === 1 && aim ? comparedWithAim("", `≤ +${aim.p50} / +${aim.p99} ms`, isMet).slice(1) : ["", ""];
    return ["", way.name, ...cells, signed(added("p50")), signed(added("p99")), ms(of("cpuMs")), ...judged];
  });
}

const signed = (value: number) => `${value < 0 ? "−" : "+"}${ms(Math.abs(value))}`;
