import { readFileSync } from "node:fs";
import { type Plan, plans, Quota, Quotas } from "@stoa/contract";
import { z } from "zod";
import { isCurrency, toMinor } from "../money/amount.ts";

const PlanTerms = z.strictObject({
  /** null: by agreement with the operator; the account itself cannot choose or leave it. */
  monthlyPrice: z.number().min(0).nullable(),
  quotas: Quotas,
  /** Prompt runs at once, per account and process: each holds its output in memory. */
  concurrentRuns: z.int().min(1).max(10_000),
});

const eachPlan = <S extends z.ZodType>(offer: S) =>
  z.strictObject({ free: offer, pro: offer, business: offer, enterprise: offer });

const PlanConfigSchema = z.strictObject({
  currency: z.string().refine(isCurrency, "is not an ISO 4217 code"),
  plans: eachPlan(PlanTerms),
  /** The quotas of an account's sessions, whatever its plan. */
  sessions: Quotas,
  /** The quotas of visitors without an account, by address. */
  guests: Quotas,
  /** The limit of wrong credentials from one address. */
  failedCredentials: Quota,
});

/** The prices and quotas of plans, and the quotas outside of plans. */
export type PlanConfig = z.infer<typeof PlanConfigSchema>;

/** The operator's file: only what it changes. */
const Changes = PlanConfigSchema.extend({ plans: eachPlan(PlanTerms.partial()).partial() }).partial();
type Changes = z.infer<typeof Changes>;

const BUILT_IN = new URL("./plans.json", import.meta.url);
export const builtInPlans: PlanConfig = PlanConfigSchema.parse(JSON.parse(readFileSync(BUILT_IN, "utf8")));

/** The built-in plans with the file's changes, or all problems of the file. */
export function readPlanConfig(file: string): { book: PlanConfig; problems: string[] } {
  try {
    return withChanges(JSON.parse(readFileSync(file, "utf8")));
  } catch (error) {
    return { book: builtInPlans, problems: [`is not readable as JSON: ${(error as Error).message}`] };
  }
}

function withChanges(given: unknown): { book: PlanConfig; problems: string[] } {
  const { data, error } = Changes.safeParse(given);
  if (error) return { book: builtInPlans, problems: problemsOf(error) };
  const book = merge(data);
  return { book, problems: [...findFreePlanProblem(book), ...findInvalidPrices(book)] };
}

function merge({ plans: changed = {}, ...rest }: Changes): PlanConfig {
  const offers = plans.map((plan) => [plan, { ...builtInPlans.plans[plan], ...changed[plan] }]);
  const given = Object.entries(rest).filter(([, value]) => value !== undefined);
  return { ...builtInPlans, ...Object.fromEntries(given), plans: Object.fromEntries(offers) };
}

const problemsOf = ({ issues }: z.ZodError) =>
  issues.map(({ path, message }) => `${path.join(".") || "the file"}: ${message}`);

const findFreePlanProblem = ({ plans: { free } }: PlanConfig) =>
  free.monthlyPrice === 0 ? [] : ["plans.free.monthlyPrice: must be 0, because every account begins with it"];

function findInvalidPrices({ plans: offers, currency }: PlanConfig): string[] {
  const isWrong = (plan: Plan) => {
    const { monthlyPrice } = offers[plan];
    return monthlyPrice !== null && toMinor(monthlyPrice, currency) === null;
  };
  return plans
    .filter(isWrong)
    .map((plan) => `plans.${plan}.monthlyPrice: is not a valid amount in ${currency}`);
}

/** In minor units of the book's currency; null: by agreement with the operator. */
export function planPriceMinor(book: PlanConfig, plan: Plan): bigint | null {
  const { monthlyPrice } = book.plans[plan];
  return monthlyPrice === null ? null : toMinor(monthlyPrice, book.currency);
}
