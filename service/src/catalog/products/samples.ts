import { isDeepStrictEqual } from "node:util";
import {
  hasInvisible,
  MAX_SAMPLE_CHARACTERS,
  MAX_SAMPLE_LEVELS,
  MAX_SAMPLE_MEMBERS,
  type ProductSample,
  type SampleInput,
  type SignedRunReceipt,
  toVisibleLine,
  toVisibleText,
  VARIABLE_NAME,
} from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import { type FieldProblem, fieldError, ruleViolation } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import type { Queries } from "../../platform/db/database.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** Registered in base.ts: the catalog does not import executions. */
    findSampleRun: FindSampleRun;
  }
}

/** Finds a completed run with stored texts in the history of a user. */
export type FindSampleRun = (
  ctx: Context,
  db: Queries,
  run: { userId: string; productId: string; executionId: string },
) => Promise<SampleRun | null>;

export interface SampleRun {
  input: Record<string, unknown>;
  output: unknown;
  /** That of a prompt; those of a workflow's steps. */
  models: string[];
  createdAt: Date;
  receipt: SignedRunReceipt;
}

/** As in `products.samples`, where the id of the run is a plain uuid. */
export type StoredSample = ProductSample;

export const toSample = ({ executionId, ...sample }: StoredSample): ProductSample => ({
  ...sample,
  ...(executionId !== undefined && { executionId: toId("exec", executionId) }),
});

interface SampleTarget {
  type: string;
  stored: StoredSample[];
  /** The product whose runs its author may use; null: none, since it is new or the caller is not its author. */
  runsOf: { id: string; authorId: string } | null;
  /** A file may come from another shop, so a run that is unknown here makes a typed sample. */
  isImport: boolean;
}

/** Copies the runs that samples name. Samples that did not change keep their time, also when their run is deleted. */
export async function resolveSamples(
  ctx: Context,
  db: Queries,
  sent: SampleInput[],
  target: SampleTarget,
): Promise<StoredSample[]> {
  const samples = sent.map(toVisibleSample);
  const typed = samples.map((sample) => (sample.executionId === undefined ? sample : null));
  const problems = typed.flatMap((sample, index) =>
    sample ? typedProblems(sample, index, target.type) : [],
  );
  if (problems.length > 0) throw fieldError("INVALID_REQUEST", problems);
  const resolved: StoredSample[] = [];
  for (const [index, sample] of samples.entries())
    resolved.push(
      sample.executionId === undefined
        ? reuseOrAdd(ctx, toComplete(sample), target)
        : await copyRun(ctx, db, sample, `samples[${index}]`, target),
    );
  return resolved;
}

type Texts = Pick<StoredSample, "input" | "output" | "model">;

const isComplete = (sample: SampleInput): sample is SampleInput & Texts =>
  sample.input !== undefined && hasOutput(sample) && sample.model !== undefined;

const hasOutput = ({ output }: SampleInput) => output !== undefined && output !== null;

function typedProblems(sample: SampleInput, index: number, type: string): FieldProblem[] {
  const place = `samples[${index}]`;
  const missing = (["input", "output", "model"] as const).filter((name) =>
    name === "output" ? !hasOutput(sample) : sample[name] === undefined,
  );
  if (missing.length > 0)
    return missing.map((name) => ({ field: `${place}.${name}`, reason: "is required without executionId" }));
  return atPlace(place, fitProblems(toComplete(sample), type));
}

function toComplete(sample: SampleInput): Texts {
  if (!isComplete(sample)) throw new Error("The sample is not complete");
  return { input: sample.input, output: sample.output, model: sample.model };
}

/** A typed sample keeps its time until its texts change. */
const reuseOrAdd = (ctx: Context, texts: Texts, { stored }: Pick<SampleTarget, "stored">): StoredSample =>
  stored.find((known) => known.executionId === undefined && isSame(known, texts)) ?? {
    ...texts,
    createdAt: ctx.now().toISOString(),
  };

const isSame = (known: Texts, { input, output, model }: SampleInput) =>
  (input === undefined || isDeepStrictEqual(known.input, input)) &&
  (output === undefined || output === null || isDeepStrictEqual(known.output, output)) &&
  (model === undefined || known.model === model);

async function copyRun(
  ctx: Context,
  db: Queries,
  sample: SampleInput,
  place: string,
  target: SampleTarget,
): Promise<StoredSample> {
  const field = `${place}.executionId`;
  const executionId = toUuid("exec", sample.executionId ?? "");
  const known = target.stored.find((one) => one.executionId === executionId);
  const found = known ?? (executionId && (await findRun(ctx, db, executionId, sample, target)));
  if (!found) {
    if (target.isImport && isComplete(sample)) {
      const problems = atPlace(place, fitProblems(sample, target.type));
      if (problems.length > 0) throw fieldError("INVALID_REQUEST", problems);
      return reuseOrAdd(ctx, toComplete(sample), target);
    }
    throw ruleViolation(
      field,
      target.runsOf
        ? "is no completed run of yours of this product with stored texts"
        : "is no run of this product by its author",
    );
  }
  if (!isSame(found, sample)) throw ruleViolation(field, "has another input, output or model than you sent");
  if (found.model === "") throw ruleViolation(`${place}.model`, "is required: the run called no model");
  const [problem] = fitProblems(found, target.type);
  if (problem) throw ruleViolation(field, `cannot be copied: its ${problem.field} ${problem.reason}`);
  return found;
}

async function findRun(
  ctx: Context,
  db: Queries,
  executionId: string,
  { model }: SampleInput,
  { runsOf }: SampleTarget,
): Promise<StoredSample | null> {
  if (!runsOf) return null;
  const wanted = { userId: runsOf.authorId, productId: runsOf.id, executionId };
  const run = await ctx.findSampleRun(ctx, db, wanted);
  if (!run) return null;
  const texts = { input: toVisible(run.input) as Record<string, unknown>, output: toVisible(run.output) };
  // Its hashes are of the texts as the run has them.
  const isUnchanged = isDeepStrictEqual(texts, { input: run.input, output: run.output });
  return {
    ...texts,
    ...(isUnchanged && { receipt: run.receipt }),
    // A workflow may call no model itself, but the products that it runs do.
    model:
      toVisibleLine(run.models.join(", ").slice(0, MAX_MODEL_CHARACTERS).toWellFormed()) || (model ?? ""),
    executionId,
    createdAt: run.createdAt.toISOString(),
  };
}

const MAX_MODEL_CHARACTERS = 200;

/** For a product that gets another type. */
export function mustFitType(samples: StoredSample[], type: string): void {
  const problems = samples.flatMap((sample, index) =>
    atPlace(`samples[${index}]`, fitProblems(sample, type)),
  );
  if (problems.length > 0) throw fieldError("INVALID_REQUEST", problems);
}

const atPlace = (place: string, problems: FieldProblem[]): FieldProblem[] =>
  problems.map(({ field, reason }) => ({ field: `${place}.${field}`, reason }));

/** Under the names of a sample's fields. */
function fitProblems({ input, output }: Pick<Texts, "input" | "output">, type: string): FieldProblem[] {
  const problems: FieldProblem[] = [];
  const add = (field: string, reason: string) => problems.push({ field, reason });
  if (type === "PROMPT") {
    for (const [name, value] of Object.entries(input))
      if (!VARIABLE_NAME.test(name)) add("input", "has a name that no variable can have");
      else if (typeof value !== "string") add(`input.${name}`, "must be a string");
    if (typeof output !== "string") add("output", "must be a string");
  }
  if (typeof output === "string" && output.trim() === "") add("output", "is empty");
  for (const [name, value] of [
    ["input", input],
    ["output", output],
  ] as const) {
    const { length } = typeof value === "string" ? value : JSON.stringify(value);
    if (length > MAX_SAMPLE_CHARACTERS)
      add(name, `has ${length} characters; at most ${MAX_SAMPLE_CHARACTERS} are allowed`);
    if (levelsOf(value) > MAX_SAMPLE_LEVELS) add(name, `has more than ${MAX_SAMPLE_LEVELS} levels`);
    if (hasHiddenName(value)) add(name, "has a name with invisible characters");
  }
  const members = countMembers(input) + countMembers(output);
  if (members > MAX_SAMPLE_MEMBERS)
    add(
      "output",
      `and the input have ${members} members together; at most ${MAX_SAMPLE_MEMBERS} are allowed`,
    );
  return problems;
}

/** As other public texts: without invisible characters. As the database returns them: without a negative zero, for example. */
const toVisible = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (_name, inner) => (typeof inner === "string" ? toVisibleText(inner) : inner)),
  );

const toVisibleSample = ({ input, output, ...sample }: SampleInput): SampleInput => ({
  ...sample,
  ...(input !== undefined && { input: toVisible(input) as Record<string, unknown> }),
  ...(output !== undefined && { output: toVisible(output) }),
});

const membersOf = (value: unknown): [string, unknown][] =>
  typeof value === "object" && value !== null ? Object.entries(value) : [];

const countMembers = (value: unknown): number =>
  membersOf(value).reduce((sum, [, inner]) => sum + 1 + countMembers(inner), 0);

const levelsOf = (value: unknown): number =>
  typeof value === "object" && value !== null
    ? 1 + Math.max(0, ...Object.values(value).map((inner) => levelsOf(inner)))
    : 0;

/** Names are not changed, since two of them could become equal. Requests cannot have the name `__proto__`. */
const hasHiddenName = (value: unknown): boolean =>
  membersOf(value).some(
    ([name, inner]) => hasInvisible(name) || name === "__proto__" || hasHiddenName(inner),
  );
