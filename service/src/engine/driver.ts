import { setTimeout as sleep } from "node:timers/promises";
import type { LeavingReason } from "../ai/live.ts";
import { canceledBy } from "../ai/runs.ts";
import type { Context } from "../context.ts";
import { Workflow } from "../workflows/definition.ts";
import type { Evaluator } from "../workflows/evaluate.ts";
import { Bell } from "./bell.ts";
import { CostLimit } from "./cost-limit.ts";
import type { End, Outcome, Prepared } from "./outcome.ts";
import { findFailure, isDone, type Place, readyIn } from "./plan.ts";
import { fitted, prepareStep, type Surroundings } from "./prepare.ts";
import { Progress } from "./progress.ts";
import { readState } from "./records.ts";
import { type Claimed, findRun, type Heard, hear } from "./run-queries.ts";
import { type Ending, RunRecord, type Written } from "./run-record.ts";
import { openResult, openStart } from "./start-text.ts";
import { hasEnded, keyOf, NO_ITEM, type StepError, type StepRun, sumOf } from "./state.ts";
import { StepTrace, tellStart } from "./trace.ts";
import { valuesOf } from "./values.ts";

/** Who was leased a run so often without writing anything of it died of it. */
const MAX_LEASES = 5;
const LOST = { code: "INTERNAL_ERROR", message: "Several processes ended while they ran this." };
/** A run whose steps wait for others that they called is looked at again, though nobody should have to. */
const LOOK_AGAIN_MS = 60_000;
/** What a provider was paid for waits no longer to be written down. */
const SOON_MS = 5;

/** null: its owner asked. */
const canceled = (reason: LeavingReason | null) => ({
  status: "canceled" as const,
  error: reason && { code: reason, message: canceledBy[reason] },
});

/** Something that is under way for a step or an item. */
interface Task {
  run: StepRun;
  stop: AbortController;
  trace: StepTrace;
}

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
  readonly #tasks = new Map<string, Task>();
  /** What maps run through, while they run. */
  readonly #items = new Map<string, unknown[]>();
  /** What becomes of steps before anybody outside is asked. */
  readonly #preparing = new Set<Promise<void>>();
  /** In milliseconds of performance.now(). */
  #heldBackUntil: number | null = null;
  /** Written down as begun before they are called. */
  #calls: { task: Task; call: (signal: AbortSignal) => Promise<Outcome> }[] = [];
  #ended: { task: Task; prepared: Prepared }[] = [];
  #isTold = false;
  #cancel: { status: "canceled"; error: StepError | null } | null = null;
  #isStopping = false;
  #isLost = false;
  #nextDueAt: Date | null = null;
  #record!: RunRecord;
  #surroundings!: Surroundings;
  #progress!: Progress;

  constructor(ctx: Context, claimed: Claimed, evaluator: Evaluator, leaseMs: number) {
    this.id = claimed.id;
    this.userId = claimed.userId;
    this.#ctx = ctx;
    this.#claimed = claimed;
    this.#evaluator = evaluator;
    this.#leaseMs = leaseMs;
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
      for (const { stop } of this.#tasks.values()) stop.abort();
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
    const [row, heard] = await Promise.all([findRun(ctx.db, id), hear(ctx.db, this.#claimed)]);
    if (!row || !heard) return false;
    const start = row.sealedStart === null ? null : openStart(ctx, this.#claimed, row.sealedStart);
    this.#record = new RunRecord(ctx, this.#claimed, row, start);
    if (start === null || leases > MAX_LEASES) {
      this.#record.signals = heard.signals;
      await this.#record.end(null, { status: "failed", error: LOST });
      return false;
    }
    tellStart(start, row);
    const workflow = Workflow.parse(JSON.parse(start.definition));
    const state = await readState(ctx, ctx.db, this.#claimed, workflow);
    const costLimit =
      start.maxCost === null ? null : new CostLimit(start.maxCost, sumOf(state.all()).costUsd);
    this.#surroundings = { id, userId, depth: row.depth, start, costLimit, evaluator: this.#evaluator };
    this.#progress = new Progress(state, ctx.now);
    this.#takeHeard(heard);
    if (row.isOwnerBanned) this.#cancel = canceled("account_banned");
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
    this.#takeIn();
    if (this.#isTold && !(await this.#hear())) return false;
    this.#passTime();
    for (const map of this.#progress.endMaps((run, outputs) =>
      fitted(this.#progress.state.work(run), outputs),
    ))
      this.#dropItems(map);
    const ending = await this.#ending();
    if (ending) return this.#goesOn(await this.#record.end(this.#progress, ending));
    if (!this.#isStopping) this.#beginReady();
    if (this.#tasks.size === 0) return this.#goesOn(await this.#leave());
    if (this.#progress.mustBeWritten || this.#calls.length > 0) {
      if (await this.#comesSoon()) return true;
      this.#heldBackUntil = null;
      const leaseEnd = new Date(this.#ctx.now().getTime() + this.#leaseMs);
      const written = await this.#record.write(this.#progress, {
        dueAt: leaseEnd,
        keepsLease: true,
        status: "running",
      });
      if (written !== "written") return this.#goesOn(written);
      this.#call();
    }
    this.#nextDueAt = this.#progress.nextDueAt();
    return true;
  }

  /** What begins is mostly known at once, and is then written in one go with what had ended: a commit less for each step. */
  async #comesSoon(): Promise<boolean> {
    // That a run goes on is told by itself: else one that waits anew would not be told to.
    if (this.#preparing.size === 0 || this.#record.status === "waiting") return false;
    this.#heldBackUntil ??= performance.now() + SOON_MS;
    const left = this.#heldBackUntil - performance.now();
    if (left <= 0) return false;
    const soon = new AbortController();
    const late = sleep(left, false, { signal: soon.signal }).catch(() => false);
    const isPrepared = await Promise.race([Promise.all(this.#preparing).then(() => true), late]);
    soon.abort();
    return isPrepared;
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
    });
  }

  #call(): void {
    for (const { task, call } of this.#calls.splice(0))
      void this.#launch(task, () => call(AbortSignal.any([task.stop.signal, this.#ctx.shutdown])));
  }

  #beginReady(): void {
    for (const place of readyIn(this.#progress.state)) if (this.#canBegin(place)) this.#begin(place);
  }

  /** An item must wait until its map, which somebody else may have begun, knows again what it runs through. */
  #canBegin({ stepId, item }: Place): boolean {
    return item === NO_ITEM || this.#items.has(stepId);
  }

  /** After what would have left the run, if nothing had stood against it. */
  #goesOn(written: Written): boolean {
    if (written !== "signaled") return false;
    this.tell();
    return true;
  }

  async #hear(): Promise<boolean> {
    this.#isTold = false;
    const heard = await hear(this.#ctx.db, this.#claimed);
    if (heard) this.#takeHeard(heard);
    return heard !== undefined;
  }

  #takeHeard(heard: Heard): void {
    this.#record.signals = heard.signals;
    if (heard.cancelRequestedAt) this.#cancel = canceled(heard.cancelReason);
    for (const { stepId, decision, decidedAt } of heard.decisions)
      this.#progress.decide(stepId, decision, new Date(decidedAt));
    for (const end of heard.ends) this.#takeEnd(end);
  }

  #takeEnd({ id, stepId, item, sealedResult }: Heard["ends"][number]): void {
    const run = this.#progress.state.find(stepId, item);
    if (run?.status !== "running" || run.called !== id) return;
    const { output, error, spent } = openResult(
      this.#ctx,
      { id, userId: this.#claimed.userId },
      sealedResult,
    );
    const facts = { provider: null, model: null, spent };
    this.#surroundings.costLimit?.spend(spent.costUsd);
    const outcome: End = error
      ? { kind: "failed", error, isFinal: false, facts }
      : fitted(this.#progress.state.work(run), output, facts);
    this.#progress.settle(run, outcome);
  }

  #takeIn(): void {
    for (const { task, prepared } of this.#ended.splice(0)) {
      const key = keyOf(task.run.stepId, task.run.item);
      // Given up meanwhile: however it went, it counts no more.
      if (this.#tasks.get(key) !== task) continue;
      this.#tasks.delete(key);
      this.#take(task, prepared);
    }
  }

  #take(task: Task, prepared: Prepared): void {
    const { run } = task;
    switch (prepared.kind) {
      case "given_up":
        return;
      case "call":
        this.#progress.noteCall(run);
        this.#tasks.set(keyOf(run.stepId, run.item), task);
        this.#calls.push({ task, call: prepared.call });
        return;
      case "called":
        this.#progress.noteCalled(run, prepared.executionId);
        return;
      case "wait":
        this.#progress.noteWait(run, prepared.until);
        return;
      case "map":
        this.#items.set(run.stepId, prepared.items);
        this.#progress.noteMap(run, prepared.items.length);
        return;
      default:
        this.#progress.settle(run, prepared);
    }
  }

  #passTime(): void {
    const { again, late } = this.#progress.passTime();
    for (const run of late) {
      this.#drop(run);
      if (this.#progress.state.work(run).type === "map") this.#dropItems(run);
    }
    if (this.#isStopping) return;
    for (const run of again) if (this.#canBegin(run)) this.#begin(run);
  }

  #dropItems(map: StepRun): void {
    for (const run of this.#progress.state.itemsOf(map)) {
      if (!run || hasEnded(run)) continue;
      this.#drop(run);
      this.#progress.cancel(run);
    }
  }

  #drop({ stepId, item }: Place): void {
    const key = keyOf(stepId, item);
    this.#tasks.get(key)?.stop.abort();
    this.#tasks.delete(key);
    this.#calls = this.#calls.filter(({ task }) => keyOf(task.run.stepId, task.run.item) !== key);
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
    const task: Task = { run, stop: new AbortController(), trace: new StepTrace(run, work) };
    this.#tasks.set(keyOf(run.stepId, run.item), task);
    const bindings = { input: this.#surroundings.start.input, steps: state.outputs() };
    const item =
      run.item === NO_ITEM ? {} : { item: this.#items.get(run.stepId)![run.item], index: run.item };
    const prepared = this.#launch(task, () =>
      prepareStep(this.#ctx, this.#surroundings, run, work, { ...bindings, ...item }),
    );
    this.#preparing.add(prepared);
    void prepared.then(() => this.#preparing.delete(prepared));
  }

  #launch(task: Task, work: () => Promise<Prepared>): Promise<void> {
    return task.trace
      .within(work)
      .catch((error): Prepared => {
        this.#ctx.log.error({ execution: this.id, err: error }, "a step of a workflow could not be run");
        return {
          kind: "failed",
          error: { code: "INTERNAL_ERROR", message: "Something went wrong on our side." },
          isFinal: true,
        };
      })
      .then((prepared) => {
        task.trace.cameTo(prepared);
        this.#ended.push({ task, prepared });
        this.#bell.ring();
      });
  }

  async #ending(): Promise<Ending | null> {
    if (this.#cancel) return this.#cancel;
    const { state } = this.#progress;
    const refusal = this.#surroundings.costLimit?.refusal;
    if (refusal) return { status: "failed", error: { code: refusal.code, message: refusal.message } };
    const failure = findFailure(state);
    if (failure)
      return {
        status: "failed",
        error: { code: failure.error!.code, message: `Step ${failure.stepId}: ${failure.error!.message}` },
      };
    if (!isDone(state)) return null;
    const { input } = this.#surroundings.start;
    const valued = await valuesOf(
      this.#surroundings,
      { result: state.workflow.result },
      { input, steps: state.outputs() },
    );
    if ("fault" in valued)
      return { status: "failed", error: { code: "EXPRESSION_FAILED", message: valued.fault } };
    return { status: "completed", output: valued.values["result"] ?? null };
  }
}
