import { cpuOf, cpuOfFamily } from "../cpu.ts";
import { type LoadResult, runLoad } from "../load.ts";
import { childrenOf, memoryOf } from "../memory.ts";
import type { Options } from "../options.ts";
import { median } from "../quantile.ts";
import { comparedWithAim, megabytes, type Report } from "../report.ts";
import { type Node, openShop, type Shop } from "../shop.ts";

const ROUNDS = 5;
const SECONDS = 3;
const CONNECTIONS = 32;
const PROCESSES = 2;
const AIM = 1.7;
const LIST = "/v1/products?limit=20";

interface Kind {
  name: string;
  path: string;
  headers: Record<string, string>;
  aim?: number;
}

interface Measured extends LoadResult {
  /** CPU milliseconds of all processes of the node, for a request. */
  nodeMs: number;
  /** Cores that the load generator used. */
  loadCores: number;
  /** The part of the API processes' CPU time that the busiest of them used. */
  busiest: number;
}

/** STOA_PROCESSES=2 beside one process, on the same database, in turns. */
export async function measureProcesses(options: Options): Promise<Report> {
  const shop = await openShop(options);
  const quiet = { STOA_LOG_LEVEL: "warn" };
  const one = await shop.startNode(quiet);
  const several = await shop.startNode({ ...quiet, STOA_PROCESSES: String(PROCESSES) });
  const results = kindsOf(shop).map((kind) => ({ kind, one: [] as Measured[], several: [] as Measured[] }));
  for (let round = 0; round <= ROUNDS; round++) {
    for (const { kind, ...sides } of results) {
      const pair = { one: await measure(one, kind), several: await measure(several, kind) };
      // The first round warms up.
      if (round > 0) for (const side of ["one", "several"] as const) sides[side].push(pair[side]);
    }
  }
  return reportOf(results, await memoryOfNodes(one, several));
}

const kindsOf = (shop: Shop): Kind[] => [
  { name: "hot list", path: LIST, headers: { authorization: `Bearer ${shop.reader}` }, aim: AIM },
  {
    ...{ name: "the same in a session, whose row is read", path: LIST },
    headers: { authorization: `Bearer ${shop.session}` },
  },
];

async function measure({ origin, pid }: Node, { path, headers }: Kind): Promise<Measured> {
  const children = await childrenOf(pid);
  const before = { node: cpuOfFamily(pid), children: cpuOf(children) };
  const lanes = [[{ method: "GET", path, headers }]];
  const result = await runLoad({ origin, seconds: SECONDS, connections: CONNECTIONS, lanes });
  const used = [...cpuOf(children)].map(([child, ms]) => ms - (before.children.get(child) ?? 0));
  // The worker is the least busy of them.
  const ofApi = used.sort((a, b) => b - a).slice(0, PROCESSES);
  return {
    ...result,
    nodeMs: (cpuOfFamily(pid) - before.node) / result.requests,
    loadCores: result.cpuMs / (SECONDS * 1_000),
    busiest:
      Math.max(...ofApi, 0) /
      Math.max(
        1,
        ofApi.reduce((sum, ms) => sum + ms, 0),
      ),
  };
}

async function memoryOfNodes(one: Node, several: Node): Promise<number[]> {
  const pids = [one.pid, several.pid, ...(await childrenOf(several.pid))];
  return (await Promise.all(pids.map(memoryOf))).map(({ shareBytes }) => shareBytes);
}

function reportOf(
  results: { kind: Kind; one: Measured[]; several: Measured[] }[],
  [single = 0, supervisor = 0, ...children]: number[],
): Report {
  const rows = results.map(({ kind, one, several }) => {
    const middle = (side: Measured[], of: keyof Measured) => median(side.map((result) => result[of]));
    const raw = median(several.map(({ perSecond }, round) => perSecond / one[round]!.perSecond));
    const capacity = median(several.map(({ nodeMs }, round) => (PROCESSES * one[round]!.nodeMs) / nodeMs));
    return [
      kind.name,
      ...[middle(one, "perSecond").toFixed(0), middle(several, "perSecond").toFixed(0), raw.toFixed(2)],
      ...[middle(one, "nodeMs").toFixed(3), middle(several, "nodeMs").toFixed(3)],
      ...[middle(several, "loadCores").toFixed(2), middle(several, "busiest").toFixed(2)],
      ...(kind.aim
        ? comparedWithAim(capacity.toFixed(2), `≥ ${kind.aim}`, capacity >= kind.aim)
        : [capacity.toFixed(2), "", ""]),
    ];
  });
  return {
    columns: [
      ...["request", "per second, 1 process", `${PROCESSES} processes`, "ratio"],
      ...["CPU ms, 1 process", `CPU ms, ${PROCESSES} processes`, "cores of the load", "busiest process"],
      ...["ratio without the load", "aim", "met"],
    ],
    rows,
    notes: [
      `10,000 products, ${CONNECTIONS} connections, ${ROUNDS} rounds in turn, medians, no request log. \`CPU ms\` is of all processes of the node, the supervisor included, for a request. ${PROCESSES} processes share the cores with the load and PostgreSQL. \`ratio without the load\` is what as many cores as processes answer, compared with one core: ${PROCESSES} × the CPU time of one process / that of ${PROCESSES}. \`busiest process\` is its part of the API processes' CPU time; 0.50 is even.`,
      `Memory after the load, shared pages by their share: ${megabytes(single)} MB as one process; ${megabytes(supervisor)} MB of the supervisor, and ${children.map(megabytes).join(", ")} MB of its processes.`,
    ],
  };
}
