import type { Logger } from "pino";
import type { Database } from "../../platform/db/database.ts";
import { MAX_GROUPED_CHARACTERS, WriteGroup } from "../../platform/db/write-group.ts";
import {
  type CallEnd,
  hasLimits,
  type LateRefusal,
  type Reservation,
  type ReservationResult,
} from "../provider-keys/queries.ts";
import {
  type CompletedRun,
  completeExecutions,
  type ExecutionEnd,
  endExecution,
  insertExecution,
  insertExecutions,
  type NewExecution,
  type UnlimitedRun,
} from "./run-queries.ts";
import type { RunTarget } from "./run-targets.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** Writes the beginnings and the ends of prompt runs. */
    runWriter: RunWriter;
  }
}

type Begun = ReservationResult<LateRefusal>;

/** Writes the beginnings of runs that come at once in one statement, and so their ends (docs/decisions/0081-grouped-run-writes.md). */
export class RunWriter {
  readonly #db: Database;
  readonly #begins: WriteGroup<UnlimitedRun, Begun>;
  readonly #ends: WriteGroup<CompletedRun, boolean>;

  constructor(db: Database, log: Logger) {
    const onRefused = (error: unknown) =>
      log.warn({ err: error }, "runs are written alone: PostgreSQL refused the statement of several");
    this.#db = db;
    this.#begins = new WriteGroup({
      writeOne: ({ run, reservation, remembered }) => insertExecution(db, run, reservation, remembered),
      async writeMany(runs) {
        const begun = await insertExecutions(db, runs);
        return runs.map(({ run }) => (begun.has(run.id) ? {} : undefined));
      },
      onRefused,
    });
    this.#ends = new WriteGroup({
      writeOne: ({ id, end, call }) => updateEnded(db, id, end, call),
      async writeMany(runs) {
        const ended = await completeExecutions(db, runs);
        return runs.map(({ id }) => ended.has(id) || undefined);
      },
      onRefused,
    });
  }

  /** As `insertExecution`. A run whose key has limits is inserted alone, because it may wait for other calls of its key. */
  begin(run: NewExecution, reservation: Reservation | null, remembered: RunTarget | null): Promise<Begun> {
    if (!reservation || !remembered || hasLimits(remembered.key))
      return insertExecution(this.#db, run, reservation, remembered);
    return this.#begins.write({ run, reservation, remembered });
  }

  /** As `endExecution`. Returns whether the run was still running. */
  end(id: string, end: ExecutionEnd, call: CallEnd | null): Promise<boolean> {
    const isGrouped = end.status === "completed" && (end.sealedTexts?.length ?? 0) <= MAX_GROUPED_CHARACTERS;
    if (!isGrouped || !call || call.keyStatus !== null) return updateEnded(this.#db, id, end, call);
    return this.#ends.write({ id, end, call });
  }
}

async function updateEnded(
  db: Database,
  id: string,
  end: ExecutionEnd,
  call: CallEnd | null,
): Promise<boolean> {
  const { numAffectedRows } = await endExecution(db, id, end, call);
  return numAffectedRows !== 0n;
}
