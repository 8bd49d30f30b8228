import type { Logger } from "pino";
import type { Database } from "../../platform/db/database.ts";
import { MAX_GROUPED_CHARACTERS, WriteGroup } from "../../platform/db/write-group.ts";
import { hasLimits } from "../provider-keys/provider-calls.ts";
import {
  type Checkpoint,
  type CheckpointResult,
  type LeasedCheckpoint,
  type RunLease,
  type StartedRun,
  type StepRow,
  startRuns,
  writeCheckpoint,
  writeCheckpoints,
} from "./run-queries.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** Writes the checkpoints of workflow runs. */
    checkpointWriter: CheckpointWriter;
  }
}

/** Writes the checkpoints of different runs that come at once in one statement (docs/decisions/0095-fewer-statements-of-workflow-runs.md). */
export class CheckpointWriter {
  readonly #db: Database;
  readonly #starts: WriteGroup<StartedRun, boolean>;
  readonly #checkpoints: WriteGroup<LeasedCheckpoint, CheckpointResult>;

  constructor(db: Database, log: Logger) {
    const onRefused = (error: unknown) =>
      log.warn(
        { err: error },
        "workflow runs are written alone: PostgreSQL refused the statement of several",
      );
    this.#db = db;
    this.#starts = new WriteGroup({
      writeOne: async (run) => (await startRuns(db, [run])).has(run.id),
      async writeMany(runs) {
        const started = await startRuns(db, runs);
        return runs.map(({ id }) => started.has(id) || undefined);
      },
      onRefused,
    });
    this.#checkpoints = new WriteGroup({
      writeOne: ({ lease, checkpoint }) => writeCheckpoint(db, lease, checkpoint),
      async writeMany(checkpoints) {
        const written = await writeCheckpoints(db, checkpoints);
        return checkpoints.map(({ lease }) => written.get(lease.id));
      },
      onRefused,
    });
  }

  /** Inserts a run; false: its target is not as its process remembers it. */
  async start(run: StartedRun): Promise<boolean> {
    return run.sealedStart.length + charactersOf(run.first?.steps ?? []) <= MAX_GROUPED_CHARACTERS
      ? this.#starts.write(run)
      : (await startRuns(this.#db, [run])).has(run.id);
  }

  /** As `writeCheckpoint`. */
  write(lease: RunLease, checkpoint: Checkpoint): Promise<CheckpointResult> {
    return isGroupable(checkpoint)
      ? this.#checkpoints.write({ lease, checkpoint })
      : writeCheckpoint(this.#db, lease, checkpoint);
  }
}

/** A call of a key with limits waits for others of its key, so its checkpoint is written alone. */
const isGroupable = ({ callChanges, steps, change }: Checkpoint): boolean =>
  !callChanges.opened.some(({ key }) => hasLimits(key)) &&
  charactersOf(steps) + (change?.sealedTexts?.length ?? 0) <= MAX_GROUPED_CHARACTERS;

const charactersOf = (steps: readonly StepRow[]): number =>
  steps.reduce((sum, { sealedOutput }) => sum + (sealedOutput?.length ?? 0), 0);
