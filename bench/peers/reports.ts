import { median, quantilesOf } from "../quantile.ts";
import { ms, type Report } from "../report.ts";
import type { CaseResult, Result } from "./compare.ts";
import type { OrderCaseResult, OrderResult } from "./orders.ts";

const OURS = "Stoa";
const ANEW = "Stoa, asked anew";

/** The median of a figure of all rounds. */
const middle = <Figure extends string>(
  { rounds }: { rounds: Record<NoInfer<Figure>, number>[] },
  which: Figure,
): number => median(rounds.map((round) => round[which]));
/** Below a hundred answers or orders there is no 99th percentile. */
const p99Of = (p99: number, count: number) => (count < 100 ? "–" : ms(p99));
const few = (value: number) => (value < 10 ? value.toPrecision(2) : value.toFixed(0));
const resultOf = <R extends { way: string }>(results: R[], way: string) =>
  results.find((result) => result.way === way);

/** Rounds of one way, of queries or of orders. */
interface Rates {
  rounds: { perSecond: number }[];
}

/** Our speed relative to a peer's: the median of the ratios of each pass. */
function times(ours: Rates | undefined, other: Rates): string {
  if (!ours) return "";
  const ratios = ours.rounds.map(({ perSecond }, round) => perSecond / other.rounds[round]!.perSecond);
  return few(median(ratios));
}

const waysOf = (cases: CaseResult[]) => [
  ...new Set(cases.flatMap(({ results }) => results.map(({ way }) => way))),
];
const inThousands = (size: number) => size.toLocaleString("en");

/** Requests per second of all systems, and our relative speed without our cache. */
export function shortReport(cases: CaseResult[]): Report {
  const ways = waysOf(cases);
  const cellOf = (results: Result[], way: string) => {
    const result = resultOf(results, way);
    if (!result) return "–";
    const rate = few(middle(result, "perSecond"));
    if (way.startsWith(OURS)) return rate;
    return `${rate} (${times(resultOf(results, ANEW) ?? resultOf(results, OURS), result)}×)`;
  };
  return {
    columns: ["products", "case", "connections", ...ways],
    rows: cases.map(({ size, name, connections, results }) => [
      inThousands(size),
      name,
      String(connections),
      ...ways.map((way) => cellOf(results, way)),
    ]),
    notes: [
      "Requests per second, medians of rounds in turn; in brackets how many times as fast Stoa was, asked anew where it can be.",
    ],
  };
}

export function wholeReport(cases: CaseResult[]): Report {
  const rowsOf = ({ size, name, connections, results }: CaseResult) =>
    results.map((result) => [
      inThousands(size),
      name,
      result.way,
      String(connections),
      few(middle(result, "perSecond")),
      ms(middle(result, "p50")),
      p99Of(middle(result, "p99"), middle(result, "requests")),
      middle(result, "nodeMs").toFixed(2),
      middle(result, "databaseMs").toFixed(2),
      result.shows,
      (Buffer.byteLength(result.answer) / 1000).toFixed(1),
      String(result.rounds.reduce((sum, { requests }) => sum + requests, 0)),
      times(resultOf(results, OURS), result),
      times(resultOf(results, ANEW), result),
    ]);
  return {
    columns: [
      "products",
      "case",
      "asked of",
      "connections",
      "per second",
      "p50 ms",
      "p99 ms",
      "Node CPU ms",
      "PostgreSQL CPU ms",
      "shows",
      "kB",
      "requests",
      "Stoa ×",
      "anew ×",
    ],
    rows: cases.flatMap(rowsOf),
    notes: [
      "Medians of rounds in turn; `×` is the median of each round's own ratio of requests per second, Stoa's to the row's. `shows` is the first answer's, `requests` is how many were measured.",
    ],
  };
}

/** Of all rounds together, since a round has few orders of a slow system. */
const timesOf = ({ rounds }: OrderResult) => rounds.flatMap((round) => round.times);

/** Orders per second with the first size, at each load. */
export function shortOrderReport(cases: OrderCaseResult[]): Report {
  const ofSize = cases.filter(({ size }) => size === cases[0]!.size);
  const ways = ofSize[0]?.results ?? [];
  const cellsOf = ({ results }: OrderCaseResult, way: string) => {
    const result = resultOf(results, way)!;
    const { p50 } = quantilesOf(timesOf(result));
    return [few(middle(result, "perSecond")), ms(p50), times(resultOf(results, OURS), result)];
  };
  return {
    columns: [
      "an order in",
      "requests",
      ...ofSize.flatMap(({ atOnce }) => [`${atOnce} at once: per second`, "p50 ms", "Stoa ×"]),
    ],
    rows: ways.map(({ way, requestsPerOrder }) => [
      way,
      String(requestsPerOrder),
      ...ofSize.flatMap((result) => cellsOf(result, way)),
    ]),
    notes: [
      `With ${inThousands(cases[0]?.size ?? 0)} products. Medians of rounds in turn; \`×\` is the median of each round's own ratio of orders per second, Stoa's to the row's.`,
    ],
  };
}

export function wholeOrderReport(cases: OrderCaseResult[]): Report {
  const rowsOf = ({ size, atOnce, results }: OrderCaseResult) =>
    results.map((result) => {
      const durations = timesOf(result);
      const { p50, p99 } = quantilesOf(durations);
      return [
        inThousands(size),
        result.way,
        String(result.requestsPerOrder),
        String(atOnce),
        few(middle(result, "perSecond")),
        ms(p50),
        p99Of(p99, durations.length),
        middle(result, "nodeMs").toFixed(2),
        middle(result, "databaseMs").toFixed(2),
        String(durations.length),
        times(resultOf(results, OURS), result),
      ];
    });
  return {
    columns: [
      "products",
      "an order in",
      "requests",
      "at once",
      "per second",
      "p50 ms",
      "p99 ms",
      "Node CPU ms",
      "PostgreSQL CPU ms",
      "orders",
      "Stoa ×",
    ],
    rows: cases.flatMap(rowsOf),
    notes: [
      "Times are those of whole orders, from the first request to the last answer, of all rounds together. The other figures are medians of rounds in turn, and the CPU is that of an order. `orders` is how many were measured; `×` is the median of each round's own ratio of orders per second, Stoa's to the row's.",
    ],
  };
}
