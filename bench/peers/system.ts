import type { Queries } from "./queries.ts";

/** A product as an answer shows it. */
export interface SeenProduct {
  title: string;
  description: string;
  priceMinor: number;
  /** Its category and its tags; null where the answer has only ids of them. */
  labels: string[] | null;
}

export interface CheckedPage {
  products: SeenProduct[];
  /** How many there are on all pages; null where the answer does not say. */
  found: number | null;
}

/** One way into a system: Medusa has two, its store's lists and its Search Module. */
export interface ApiVariant {
  name: string;
  asks: Partial<Queries>;
  /** Throws when the answer is a refusal. */
  look(answer: string): CheckedPage;
}

/** A system that runs, in one process of its own beside its PostgreSQL. */
export interface Running {
  origin: string;
  pid: number;
  postmaster: number;
  ways: ApiVariant[];
  end(): Promise<void>;
}

/** A way in, with what stands behind it. */
export interface Target extends ApiVariant {
  server: Running;
}

export interface Peer {
  name: string;
  version: string;
  /** Installs it and fills a database with so many products; what is there already stays. */
  prepare(size: number): Promise<void>;
  start(size: number): Promise<Running>;
}
