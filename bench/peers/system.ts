import type { OrderShop, OrderWayId, Purchase } from "./order-ways.ts";
import type { Queries } from "./queries.ts";

/** A product as shown in an answer. */
export interface SeenProduct {
  title: string;
  description: string;
  priceMinor: number;
  /** Its category and tags; null: the answer has only their ids. */
  labels: string[] | null;
}

export interface CheckedPage {
  products: SeenProduct[];
  /** The total of all pages; null: not in the answer. */
  found: number | null;
}

/** One API of a system: Medusa has two, its store's lists and its Search Module. */
export interface ApiVariant {
  name: string;
  asks: Partial<Queries>;
  /** Throws when the answer is an error. */
  look(answer: string): CheckedPage;
}

/** The number of different buyers. Each buys again and again, as in a real shop. */
export const BUYERS = 50;

export const emailOf = (buyer: number) => `buyer${buyer}@bench.example`;

/** One way to order: the requests of a system's guide, or the fewest that it accepts. */
export interface OrderWay {
  name: string;
  id: OrderWayId;
}

export interface PaidOrders {
  count: number;
  totalMinor: number;
}

export interface OrderApi {
  ways: OrderWay[];
  shop: OrderShop;
  /** The product of this number, and one of BUYERS. */
  purchaseOf(product: number, buyer: number): Purchase;
  /** Reads all paid orders from the database. */
  readPaid(): Promise<PaidOrders>;
}

/** A running system: one process, and its PostgreSQL. */
export interface Running {
  origin: string;
  pid: number;
  postmaster: number;
  ways: ApiVariant[];
  orders: OrderApi;
  end(): Promise<void>;
}

export interface Target extends ApiVariant {
  server: Running;
}

export interface Peer {
  name: string;
  version: string;
  /** Installs the system and fills a database with this many products, if missing. */
  prepare(size: number): Promise<void>;
  start(size: number): Promise<Running>;
}
