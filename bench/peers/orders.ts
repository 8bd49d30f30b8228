import { cpuBetween, cpuOf, cpuOfFamily } from "../cpu.ts";
import { type OrderLoadResult, placeOrders } from "./order-load.ts";
import { productAt } from "./products.ts";
import { BUYERS, type OrderWay, type PaidOrders, type Running } from "./system.ts";

const LOADS = [1, 10];
/** Of each way at each load, before the measurement. */
const WARM_UP_SECONDS = 5;
const WARM_UP_ORDERS = 20;
const SECONDS = 8;
/** Per measurement. Three rounds reach a hundred orders, from which on there is a 99th percentile. */
const MIN_ORDERS = 34;

export interface MeasuredOrders extends OrderLoadResult {
  nodeMs: number;
  databaseMs: number;
}

/** The result of one way to order at one load. */
export interface OrderResult {
  way: string;
  requestsPerOrder: number;
  rounds: MeasuredOrders[];
}

export interface OrderCaseResult {
  size: number;
  atOnce: number;
  results: OrderResult[];
}

/** The orders of one system. All its ways share them, because a buyer buys no product twice. */
class Orders {
  readonly server: Running;
  readonly #size: number;
  readonly #placed: PaidOrders = { count: 0, totalMinor: 0 };

  constructor(server: Running, size: number) {
    this.server = server;
    this.#size = size;
  }

  place({ id }: OrderWay, count: number, atOnce: number): Promise<OrderLoadResult> {
    const { origin, orders } = this.server;
    const purchases = Array.from({ length: count }, () => this.#next());
    return placeOrders({ origin, way: id, shop: orders.shop, purchases, atOnce });
  }

  /** Each product in turn, by another buyer than in the turn before. */
  #next() {
    const at = this.#placed.count++;
    const [product, turn] = [at % this.#size, Math.floor(at / this.#size)];
    if (turn === BUYERS) throw new Error("Every buyer has every product.");
    this.#placed.totalMinor += productAt(product).priceMinor;
    return this.server.orders.purchaseOf(product, (at + turn) % BUYERS);
  }

  /** Compares the orders in the database with the placed ones, since a wrong order may be fast. */
  async check(): Promise<void> {
    const paid = await this.server.orders.readPaid();
    const [expected, found] = [this.#placed, paid].map(
      ({ count, totalMinor }) => `${count} orders of ${(totalMinor / 100).toFixed(2)} USD`,
    );
    const { name } = this.server.orders.ways[0]!;
    if (found !== expected) throw new Error(`${name}: ${expected} placed, ${found} paid.`);
    console.log(`${name}: ${found} paid`);
  }
}

interface Runner {
  orders: Orders;
  way: OrderWay;
}

/** Measures all ways to order in turn in each round, so that all see the same state of the machine. */
export async function compareOrders(
  servers: Running[],
  size: number,
  rounds: number,
): Promise<OrderCaseResult[]> {
  const orderSets = servers.map((server) => new Orders(server, size));
  const runners = orderSets.flatMap((orders) =>
    orders.server.orders.ways.map((way): Runner => ({ orders, way })),
  );
  const cases: OrderCaseResult[] = [];
  for (const atOnce of LOADS) cases.push(await compareLoad(runners, size, atOnce, rounds));
  for (const orders of orderSets) await orders.check();
  return cases;
}

async function compareLoad(
  runners: Runner[],
  size: number,
  atOnce: number,
  rounds: number,
): Promise<OrderCaseResult> {
  const turns: { runner: Runner; count: number; result: OrderResult }[] = [];
  for (const runner of runners) {
    const { perSecond, requestsPerOrder } = await warmUp(runner, atOnce);
    const count = Math.max(Math.ceil(perSecond * SECONDS), MIN_ORDERS);
    turns.push({ runner, count, result: { way: runner.way.name, requestsPerOrder, rounds: [] } });
  }
  for (let round = 0; round < rounds; round++) {
    for (const { runner, count, result } of turns) result.rounds.push(await measure(runner, count, atOnce));
  }
  const found = { size, atOnce, results: turns.map(({ result }) => result) };
  console.log(describe(found));
  return found;
}

async function warmUp({ orders, way }: Runner, atOnce: number) {
  const first = await orders.place(way, atOnce, atOnce);
  const count = Math.max(Math.ceil(first.perSecond * WARM_UP_SECONDS), WARM_UP_ORDERS);
  const { perSecond } = await orders.place(way, count, atOnce);
  return { perSecond, requestsPerOrder: first.requests / atOnce };
}

async function measure({ orders, way }: Runner, count: number, atOnce: number): Promise<MeasuredOrders> {
  const { pid, postmaster } = orders.server;
  const before = { node: cpuOf([pid]), database: cpuOfFamily(postmaster) };
  const result = await orders.place(way, count, atOnce);
  return {
    ...result,
    nodeMs: cpuBetween(before.node, cpuOf([pid])) / count,
    databaseMs: (cpuOfFamily(postmaster) - before.database) / count,
  };
}

const describe = ({ size, atOnce, results }: OrderCaseResult) =>
  `${size} orders, ${atOnce} at once: ${results
    .map(({ way, rounds }) => `${way} ${rounds.map(({ perSecond }) => perSecond.toFixed(1)).join(" ")}/s`)
    .join("; ")}`;
