/** Places the steps of a workflow by ranks, and draws the lines between them. */

export const NODE = { width: 200, height: 64 };
const RIGHT = { rank: 270, lane: 92 };
const DOWN = { rank: 112, lane: 250 };

interface GraphStep {
  id: string;
  needs: string[];
}

export interface GraphLayout {
  /** `right`: each rank is a column. `down`: each is a row. */
  direction: "right" | "down";
  width: number;
  height: number;
  nodes: Map<string, { x: number; y: number; rank: number }>;
  edges: { from: string; to: string; path: string }[];
}

/** A step, or the place where the line of a longer edge passes a rank. */
interface Cell {
  key: string;
  rank: number;
  /** The cells of the rank before that lead here. */
  before: string[];
}

/** To the right while every rank fits into the width; else down. */
export function layoutGraph(steps: GraphStep[], width: number): GraphLayout {
  const ranks = rankSteps(steps);
  const rankCount = Math.max(0, ...ranks.values()) + 1;
  const direction = rankCount * RIGHT.rank - (RIGHT.rank - NODE.width) <= width ? "right" : "down";
  const { cells, chains } = toCells(steps, ranks);
  const lanes = assignLanes(cells, findSpine(steps, chains), direction);
  const lowest = Math.min(0, ...lanes.values());
  const step = direction === "right" ? RIGHT : DOWN;
  const at = (key: string) => {
    const rank = (cells.get(key)?.rank ?? 0) * step.rank;
    const lane = ((lanes.get(key) ?? 0) - lowest) * step.lane;
    return direction === "right" ? { x: rank, y: lane } : { x: lane, y: rank };
  };
  const nodes = new Map(steps.map(({ id }) => [id, { ...at(id), rank: ranks.get(id) ?? 0 }]));
  const places = [...cells.keys()].map(at);
  return {
    direction,
    nodes,
    width: Math.max(0, ...places.map(({ x }) => x)) + NODE.width,
    height: Math.max(0, ...places.map(({ y }) => y)) + NODE.height,
    edges: chains.map(({ from, to, keys }) => ({ from, to, path: pathOf(keys.map(at), direction) })),
  };
}

function rankSteps(steps: GraphStep[]): Map<string, number> {
  const ranks = new Map<string, number>();
  const byId = new Map(steps.map((step) => [step.id, step]));
  const rankOf = (id: string): number => {
    const known = ranks.get(id);
    if (known !== undefined) return known;
    ranks.set(id, 0);
    const needs = byId.get(id)?.needs.filter((need) => byId.has(need)) ?? [];
    const rank = Math.max(-1, ...needs.map(rankOf)) + 1;
    ranks.set(id, rank);
    return rank;
  };
  for (const { id } of steps) rankOf(id);
  return ranks;
}

interface Chain {
  from: string;
  to: string;
  /** From the first step over the places between to the last one. */
  keys: string[];
}

function toCells(steps: GraphStep[], ranks: Map<string, number>) {
  const cells = new Map<string, Cell>(
    steps.map(({ id }) => [id, { key: id, rank: ranks.get(id) ?? 0, before: [] }]),
  );
  const chains: Chain[] = [];
  for (const { id, needs } of steps)
    for (const from of needs.filter((need) => ranks.has(need))) {
      const keys = [from];
      for (let rank = (ranks.get(from) ?? 0) + 1; rank < (ranks.get(id) ?? 0); rank++) {
        const key = `${from}>${id}@${rank}`;
        cells.set(key, { key, rank, before: [keys.at(-1) ?? from] });
        keys.push(key);
      }
      cells.get(id)?.before.push(keys.at(-1) ?? from);
      chains.push({ from, to: id, keys: [...keys, id] });
    }
  return { cells, chains };
}

/** The shortest way to the last step: it is drawn straight. */
function findSpine(steps: GraphStep[], chains: Chain[]): Set<string> {
  const needed = new Set(steps.flatMap(({ needs }) => needs));
  const last = steps.filter(({ id }) => !needed.has(id)).at(-1);
  const lengths = new Map<string, number>();
  const into = Map.groupBy(chains, ({ to }) => to);
  const lengthOf = (id: string): number => {
    const known = lengths.get(id);
    if (known !== undefined) return known;
    lengths.set(id, 0);
    const before = into.get(id) ?? [];
    const length = before.length === 0 ? 1 : 1 + Math.min(...before.map(({ from }) => lengthOf(from)));
    lengths.set(id, length);
    return length;
  };
  const spine = new Set<string>();
  for (let id = last?.id; id !== undefined; ) {
    spine.add(id);
    const before: Chain[] = into.get(id) ?? [];
    const shortest = Math.min(...before.map(({ from }) => lengthOf(from)));
    const best = before.filter(({ from }) => lengthOf(from) === shortest);
    const next = best[Math.floor((best.length - 1) / 2)];
    for (const key of next?.keys ?? []) spine.add(key);
    id = next?.from;
  }
  return spine;
}

/** Lane 0 is the spine's. Others stand near what leads to them: on both sides, or on the left of a spine that goes down. */
function assignLanes(cells: Map<string, Cell>, spine: Set<string>, direction: string): Map<string, number> {
  const lanes = new Map<string, number>();
  const byRank = Map.groupBy(cells.values(), ({ rank }) => rank);
  for (const rank of [...byRank.keys()].sort((a, b) => a - b)) {
    const all = byRank.get(rank) ?? [];
    const taken = new Set<number>();
    for (const { key } of all)
      if (spine.has(key)) {
        lanes.set(key, 0);
        taken.add(0);
      }
    const wish = ({ before }: Cell) =>
      before.length === 0 ? 0 : before.reduce((sum, key) => sum + (lanes.get(key) ?? 0), 0) / before.length;
    for (const cell of all.filter(({ key }) => !spine.has(key))) {
      const lane = nearestFree(wish(cell), taken, direction === "down");
      lanes.set(cell.key, lane);
      taken.add(lane);
    }
  }
  return lanes;
}

function nearestFree(wish: number, taken: Set<number>, isLeftOnly: boolean): number {
  const start = Math.round(wish);
  for (let distance = 0; ; distance++)
    for (const lane of [start - distance, start + distance])
      if (!taken.has(lane) && !(isLeftOnly && lane > 0)) return lane;
}

function pathOf(places: { x: number; y: number }[], direction: "right" | "down"): string {
  const isRight = direction === "right";
  const [w, h] = [NODE.width, NODE.height];
  const enter = ({ x, y }: { x: number; y: number }) => (isRight ? [x, y + h / 2] : [x + w / 2, y]);
  const leave = ({ x, y }: { x: number; y: number }) => (isRight ? [x + w, y + h / 2] : [x + w / 2, y + h]);
  let path = "";
  for (const [at, place] of places.entries()) {
    const before = places[at - 1];
    if (!before) continue;
    const [[x0 = 0, y0 = 0], [x1 = 0, y1 = 0]] = [leave(before), enter(place)];
    const curve = isRight
      ? `C${(x0 + x1) / 2} ${y0} ${(x0 + x1) / 2} ${y1} ${x1} ${y1}`
      : `C${x0} ${(y0 + y1) / 2} ${x1} ${(y0 + y1) / 2} ${x1} ${y1}`;
    path += at === 1 ? `M${x0} ${y0}${curve}` : `L${x0} ${y0}${curve}`;
  }
  return path;
}
