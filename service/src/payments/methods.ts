import type { Context } from "../context.ts";
import { findDefaultMethod } from "./queries.ts";

/** The method that pays when a person names none: their own choice, else the one that everybody has. */
export const defaultMethodOf = async (ctx: Context, userId: string): Promise<string | null> =>
  (await findDefaultMethod(ctx.db, userId)) ?? ctx.outside.payments.sharedMethods[0]?.id ?? null;
