import { median } from "../quantile.ts";
import { ms, type Report } from "../report.ts";
import type { CaseResult, Measured, Result } from "./compare.ts";

const OURS = "Stoa";
const ANEW = "Stoa, asked anew";

const middle = ({ rounds }: Result, which: keyof Measured) => median(rounds.map((round) => round[which]));
const few = (value: number) => (value < 10 ? value.toPrecision(2) : value.toFixed(0));
const resultOf = (results: Result[], way: string) => results.find((result) => result.way === way);

/** Our speed relative to a peer's: the median of the ratios of each pass. */
function times(ours: Result | undefined, other: Result): string {
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
      ...[inThousands(size), name, String(connections)],
      ...ways.map((way) => cellOf(results, way)),
    ]),
    notes: [
      "Requests per second, medians of rounds in turn; in brackets how many times as fast Stoa was, asked anew where it can be.",
    ],
  };
}

/** Below a hundred answers there is no 99th percentile. */
const hundredth = (result: Result) => (middle(result, "requests") < 100 ? "–" : ms(middle(result, "p99")));

export function wholeReport(cases: CaseResult[]): Report {
  const rowsOf = ({ size, name, connections, results }: CaseResult) =>
    results.map((result) => [
      ...[inThousands(size), name, result.way, String(connections)],
      few(middle(result, "perSecond")),
      ...[ms(middle(result, "p50")), hundredth(result)],
      ...[middle(result, "nodeMs").toFixed(2), middle(result, "databaseMs").toFixed(2)],
      ...[result.shows, (Buffer.byteLength(result.answer) / 1000).toFixed(1)],
      String(result.rounds.reduce((sum, { requests }) => sum + requests, 0)),
      times(resultOf(results, OURS), result),
      times(resultOf(results, ANEW), result),
    ]);
  return {
    columns: [
      ...["products", "case", "asked of", "connections", "per second", "p50 ms", "p99 ms"],
      ...["Node CPU ms", "PostgreSQL CPU ms", "shows", "kB", "requests", "Stoa ×", "anew ×"],
    ],
    rows: cases.flatMap(rowsOf),
    notes: [
      "Medians of rounds in turn; `×` is the median of each round's own ratio of requests per second, Stoa's to the row's. `shows` is the first answer's, `requests` is how many were measured.",
    ],
  };
}
