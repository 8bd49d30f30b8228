import { readFileSync } from "node:fs";
import { type Plan, plans, Quota, Quotas } from "@stoa/contract";
import { z } from "zod";
import { isCurrency, toMinor } from "../money/amount.ts";

const PlanTerms = z.strictObject({
  /** null: by agreement with the operator; the account itself cannot choose or leave it. */
  monthlyPrice: z.number().min(0).nullable(),
  quotas: Quotas,
  /** Concurrent prompt runs of an account in one process: each buffers its output in memory. */
  concurrentRuns: z.int().min(1).max(10_000),
});

const eachPlan = <S extends z.ZodType>(offer: S) =>
  z.strictObject({ free: offer, pro: offer, business: offer, enterprise: offer });

const PlanConfigSchema = z.strictObject({
  currency: z.string().refine(isCurrency, "is not an ISO 4217 code"),
  plans: eachPlan(PlanTerms),
  sessions: Quotas,
  /** Per address. */
  guests: Quotas,
  /** Per address. */
  failedCredentials: Quota,
});

export type PlanConfig = z.infer<typeof PlanConfigSchema>;

/** The operator's file has only the changes. */
const Changes = PlanConfigSchema.extend({ plans: eachPlan(PlanTerms.partial()).partial() }).partial();
type Changes = z.infer<typeof Changes>;

const BUILT_IN = new URL("./plans.json", import.meta.url);
export const builtInPlans: PlanConfig = PlanConfigSchema.parse(JSON.parse(readFileSync(BUILT_IN, "utf8")));

export function readPlanConfig(file: string): { planConfig: PlanConfig; problems: string[] } {
  try {
    return withChanges(JSON.parse(readFileSync(file, "utf8")));
  } catch (error) {
    return { planConfig: builtInPlans, problems: [`is not readable as JSON: ${(error as Error).message}`] };
  }
}

function withChanges(changes: unknown): { planConfig: PlanConfig; problems: string[] } {
  const { data, error } = Changes.safeParse(changes);
  if (error) return { planConfig: builtInPlans, problems: problemsOf(error) };
  const planConfig = merge(data);
  return { planConfig, problems: [...findFreePlanProblem(planConfig), ...findInvalidPrices(planConfig)] };
}

function merge({ plans: changed = {}, ...rest }: Changes): PlanConfig {
  const offers = plans.map((plan) => [plan, { ...builtInPlans.plans[plan], ...changed[plan] }]);
  const changes = Object.entries(rest).filter(([, value]) => value !== undefined);
  return { ...builtInPlans, ...Object.fromEntries(changes), plans: Object.fromEntries(offers) };
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

/** In minor units; null: by agreement with the operator. */
export function planPriceMinor(planConfig: PlanConfig, plan: Plan): bigint | null {
  const { monthlyPrice } = planConfig.plans[plan];
  return monthlyPrice === null ? null : toMinor(monthlyPrice, planConfig.currency);
}
