import type { Asks } from "./asks.ts";

/** What is seen in an answer: how many products it shows, of how many; null where it does not say. */
export interface Sight {
  shown: number;
  found: number | null;
}

/** One way into a system: Medusa has two, its store's lists and its Search Module. */
export interface Way {
  name: string;
  asks: Partial<Asks>;
  /** Throws when the answer is a refusal. */
  look(answer: string): Sight;
}

/** A system that runs, in one process of its own beside its PostgreSQL. */
export interface Running {
  origin: string;
  pid: number;
  postmaster: number;
  ways: Way[];
  end(): Promise<void>;
}

/** A way in, with what stands behind it. */
export interface Target extends Way {
  server: Running;
}

export interface Peer {
  name: string;
  version: string;
  /** Installs it and fills a database with so many products; what is there already stays. */
  prepare(size: number): Promise<void>;
  start(size: number): Promise<Running>;
}
