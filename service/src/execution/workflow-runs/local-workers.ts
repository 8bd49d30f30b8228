import type { Workflow } from "../../formats/workflow-definition/workflow-schema.ts";
import type { SealedKey } from "../provider-keys/provider-keys.ts";
import type { RunInsertion } from "./run-insertion.ts";
import type { Lease } from "./run-queries.ts";
import type { RunInput } from "./sealed-texts.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** The workflow workers of this process. */
    localWorkers: LocalWorkers;
  }
}

/** A run that this process inserts under the lease of its place. */
export interface InsertedRun {
  id: string;
  userId: string;
  createdAt: Date;
  depth: number;
  start: RunInput;
  /** The keys that the request read, by provider. */
  keys: ReadonlyMap<string, SealedKey>;
  /** The parsed definition; null: the driver parses it. */
  workflow: Workflow | null;
  /** How the driver inserts the run; null: it is inserted. */
  insertion: RunInsertion | null;
}

/** A place of a worker for a run that is inserted now. The caller must either drive the run or give the place back. */
export interface RunPlace {
  lease: Lease;
  drive(run: InsertedRun): void;
  release(): void;
}

interface LocalWorker {
  /** null: the worker is full, or older runs come first. */
  reserve(userId: string): RunPlace | null;
  drives(id: string): boolean;
}

/** Lets a request hand its run to a worker of its own process, which needs neither a claim nor the rows that the request wrote. */
export class LocalWorkers {
  readonly #workers = new Set<LocalWorker>();

  /** Returns the function that removes the worker. */
  add(worker: LocalWorker): () => void {
    this.#workers.add(worker);
    return () => void this.#workers.delete(worker);
  }

  /** null: any worker claims the run. */
  reserve(userId: string): RunPlace | null {
    for (const worker of this.#workers) {
      const place = worker.reserve(userId);
      if (place) return place;
    }
    return null;
  }

  /** Whether a worker of this process drives the run, and will report its end. */
  drives(id: string): boolean {
    return [...this.#workers].some((worker) => worker.drives(id));
  }
}
