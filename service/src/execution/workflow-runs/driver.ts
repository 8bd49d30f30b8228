import type { Context } from "../../core/context.ts";
import type { Evaluator } from "../../formats/workflow-definition/evaluator.ts";
import { Workflow } from "../../formats/workflow-definition/workflow-schema.ts";
import { retryWhileAway } from "../../platform/db/database.ts";
import { comesWithin, SOON_MS } from "./checkpoint-delay.ts";
import { Intake } from "./collect-results.ts";
import { CostLimit } from "./cost-limit.ts";
import { type Place, readyIn } from "./next-steps.ts";
import { KeyedCalls } from "./pending-calls.ts";
import { fitted, prepareStep, type Surroundings } from "./prepare-step.ts";
import { Progress } from "./progress.ts";
import { type Ending, endingOf } from "./run-end.ts";
import { RunKeys } from "./run-keys.ts";
import { type Claimed, type Heard, hear, openRun } from "./run-queries.ts";
import { hasEnded, NO_ITEM, RunState, type StepRun, sumOf } from "./run-state.ts";
import { RunRecord, type Written } from "./run-writer.ts";
import { openStart } from "./sealed-texts.ts";
import { readState } from "./step-rows.ts";
import { Tasks } from "./tasks.ts";
import { tellStart } from "./trace.ts";
import { Bell } from "./wake-up.ts";

/** Who was leased a run so often without writing anything of it died of it. */
const MAX_LEASES = 5;
const LOST = { code: "INTERNAL_ERROR", message: "Several processes ended while they ran this." };
/** A run whose steps wait for others that they called is looked at again, though nobody should have to. */
const LOOK_AGAIN_MS = 60_000;

/**
 * Drives one run for as long as its lease is ours: begins what is ready, writes down what ended, and leaves it when it has
 * ended, when only time or people can move it, or when somebody else drives it.
 */
export class Driver {
  readonly id: string;
  readonly userId: string;
  readonly #ctx: Context;
  readonly #claimed: Claimed;
  readonly #evaluator: Evaluator;
  readonly #leaseMs: number;
  readonly #bell = new Bell();
  readonly #tasks: Tasks;
  readonly #calls: KeyedCalls;
  #isTold = false;
  #isStopping = false;
  #isLost = false;
  #nextDueAt: Date | null = null;
  #record!: RunRecord;
  #surroundings!: Surroundings;
  #progress!: Progress;
  #intake!: Intake;

  constructor(ctx: Context, claimed: Claimed, evaluator: Evaluator, leaseMs: number) {
    this.id = claimed.id;
    this.userId = claimed.userId;
    this.#ctx = ctx;
    this.#claimed = claimed;
    this.#evaluator = evaluator;
    this.#leaseMs = leaseMs;
    this.#calls = new KeyedCalls(ctx);
    this.#tasks = new Tasks(ctx, claimed.id, () => this.#bell.ring());
  }

  get lease(): { id: string; token: string } {
    return this.#claimed;
  }

  /** Resolves when it drives no more. */
  async drive(): Promise<void> {
    try {
      if (!(await this.#open())) return;
      while (await this.#turn()) await this.#bell.rung();
    } finally {
      this.#tasks.giveUpAll();
      await this.#calls.close();
    }
  }

  /** It was told something, perhaps. */
  tell(): void {
    this.#isTold = true;
    this.#bell.ring();
  }

  /** What its lease was renewed with; undefined: it was not. */
  renewed(signals: number | undefined): void {
    if (signals === undefined) this.#isLost = true;
    if (signals !== this.#record?.signals) this.tell();
  }

  /** The clock may have come to where it waits for it. */
  tick(now: Date): void {
    if (this.#nextDueAt && this.#nextDueAt <= now) this.#bell.ring();
  }

  /** Begins nothing more, and leaves the run to others when what was called has ended. */
  stop(): void {
    this.#isStopping = true;
    this.#bell.ring();
  }

  async #open(): Promise<boolean> {
    const ctx = this.#ctx;
    const { id, userId, leases } = this.#claimed;
    const row = await openRun(ctx.db, this.#claimed);
    if (!row) return false;
    const start = row.sealedStart === null ? null : openStart(ctx, this.#claimed, row.sealedStart);
    this.#record = new RunRecord(ctx, this.#claimed, this.#calls, row, start);
    if (start === null || leases > MAX_LEASES) {
      this.#record.signals = row.signals;
      await this.#record.end(null, { status: "failed", error: LOST });
      return false;
    }
    tellStart(start, row);
    const workflow = Workflow.parse(JSON.parse(start.definition));
    const state = row.hasSteps
      ? await readState(ctx, ctx.db, this.#claimed, workflow)
      : new RunState(workflow, []);
    const costLimit =
      start.maxCost === null ? null : new CostLimit(start.maxCost, sumOf(state.all()).costUsd);
    this.#surroundings = {
      ...{ id, userId, depth: row.depth, start, costLimit, evaluator: this.#evaluator },
      keys: new RunKeys(ctx, userId, start),
      calls: this.#calls,
    };
    this.#progress = new Progress(state, ctx.now);
    this.#intake = new Intake(ctx, this.#surroundings, this.#progress, this.#tasks);
    this.#takeHeard(row);
    if (row.isOwnerBanned) this.#intake.cancelFor("account_banned");
    this.#resumeAll();
    return true;
  }

  /** What ran when the last process left it may have been called; a map looks up again what it runs through. */
  #resumeAll(): void {
    for (const run of this.#progress.state.all()) {
      if (run.status !== "running" || run.called !== null) continue;
      if (this.#progress.state.work(run).type === "map") this.#prepare(run);
      else this.#progress.resume(run);
    }
  }

  /** One look at all that is to be done. False: there is nothing more to do here. */
  async #turn(): Promise<boolean> {
    if (this.#isLost) return false;
    this.#intake.takeResults();
    if (this.#isTold && !(await this.#hear())) return false;
    this.#passTime();
    for (const map of this.#progress.endMaps((run, outputs) =>
      fitted(this.#progress.state.work(run), outputs),
    ))
      this.#dropItems(map);
    const ending = this.#intake.cancel ?? (await this.#ending());
    if (ending) {
      await this.#countAbandoned();
      return this.#goesOn(await this.#record.end(this.#progress, ending));
    }
    if (!this.#isStopping) this.#beginReady();
    if (this.#tasks.isEmpty) return this.#goesOn(await this.#leave());
    if (this.#progress.mustBeWritten || this.#calls.mustBeWritten || this.#tasks.hasCalls) {
      if (await this.#comesSoon()) return true;
      const leaseEnd = new Date(this.#ctx.now().getTime() + this.#leaseMs);
      const written = await this.#record.write(this.#progress, {
        dueAt: leaseEnd,
        keepsLease: true,
        status: "running",
        opens: this.#tasks.opening,
      });
      if (written !== "written") return this.#goesOn(written);
      this.#tasks.call();
    }
    this.#nextDueAt = this.#progress.nextDueAt();
    return true;
  }

  /** What runs when the run ends is broken off, and its cost is the run's. */
  async #countAbandoned(): Promise<void> {
    await this.#tasks.giveUpAndCount();
    this.#intake.takeResults();
  }

  /** What calls have cost does not wait for a result that takes its time to be worked out. */
  async #ending(): Promise<Ending | null> {
    const ending = endingOf(this.#surroundings, this.#progress.state);
    if (this.#calls.mustBeWritten && !(await comesWithin(SOON_MS, ending))) await this.#calls.write();
    return ending;
  }

  /** That a run goes on is told by itself: else one that waits anew would not be told to. */
  async #comesSoon(): Promise<boolean> {
    return this.#record.status !== "waiting" && (await this.#tasks.comeSoon());
  }

  /** Nothing is under way: time, people or others must move it, or another process. */
  #leave(): Promise<Written> {
    const { state } = this.#progress;
    const now = this.#ctx.now();
    const runs = [...state.all()];
    const isBrokenOff = runs.some(
      (run) => run.status === "running" && !run.called && state.work(run).type !== "map",
    );
    const next = this.#progress.nextDueAt() ?? new Date(now.getTime() + LOOK_AGAIN_MS);
    return this.#record.write(this.#progress, {
      dueAt: this.#isStopping || isBrokenOff ? now : next,
      keepsLease: false,
      status: runs.some(({ status }) => status === "waiting") ? "waiting" : "running",
      opens: [],
    });
  }

  #beginReady(): void {
    for (const place of readyIn(this.#progress.state)) if (this.#canBegin(place)) this.#begin(place);
  }

  /** An item must wait until its map, which somebody else may have begun, knows again what it runs through. */
  #canBegin({ stepId, item }: Place): boolean {
    return item === NO_ITEM || this.#intake.items.has(stepId);
  }

  /** After what would have left the run, if nothing had stood against it. */
  #goesOn(written: Written): boolean {
    if (written !== "signaled") return false;
    this.tell();
    return true;
  }

  async #hear(): Promise<boolean> {
    this.#isTold = false;
    const heard = await retryWhileAway(this.#ctx.shutdown, () => hear(this.#ctx.db, this.#claimed));
    if (heard) this.#takeHeard(heard);
    return heard !== undefined;
  }

  #takeHeard(heard: Heard): void {
    this.#record.signals = heard.signals;
    this.#intake.hear(heard);
  }

  #passTime(): void {
    const { again, late } = this.#progress.passTime();
    for (const run of late) {
      this.#tasks.giveUp(run);
      if (this.#progress.state.work(run).type === "map") this.#dropItems(run);
    }
    if (this.#isStopping) return;
    for (const run of again) if (this.#canBegin(run)) this.#begin(run);
  }

  #dropItems(map: StepRun): void {
    for (const run of this.#progress.state.itemsOf(map)) {
      if (!run || hasEnded(run)) continue;
      this.#tasks.giveUp(run);
      this.#progress.cancel(run);
    }
  }

  #begin(place: Place): void {
    const run = this.#progress.begin(place);
    if (!run) return;
    if (run.items !== null) this.#progress.reopenItems(run);
    this.#prepare(run);
  }

  #prepare(run: StepRun): void {
    const { state } = this.#progress;
    const work = state.work(run);
    const bindings = { input: this.#surroundings.start.input, steps: state.outputs() };
    const item =
      run.item === NO_ITEM ? {} : { item: this.#intake.items.get(run.stepId)![run.item], index: run.item };
    this.#tasks.prepare(run, work, () =>
      prepareStep(this.#ctx, this.#surroundings, run, work, { ...bindings, ...item }),
    );
  }
}
