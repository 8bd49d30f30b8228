import { Address, type Plan, type Role, visibleLine } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import { ApiError, invalidRequest } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { firstOf } from "../../core/required.ts";
import type { Tx } from "../../platform/db/database.ts";
import { hasSqlState, UNIQUE_VIOLATION } from "../../platform/db/sql-state.ts";
import {
  findUserByEmail,
  findUserById,
  insertUser,
  lockAuthorRow,
  lockPlanOfUser,
  updatePlanOfUser,
  updateRoleToSeller,
} from "./queries.ts";

export interface CreateUserInput {
  email: string;
  name: string;
  bio?: string;
  role?: Role;
  plan?: Plan;
  /** True by default: operators vouch for the accounts that they create. */
  emailVerified?: boolean;
  verified?: boolean;
  passwordHash?: string | null;
  demo?: boolean;
}

const Name = visibleLine(100);

/** Returns the uuid. Throws CONFLICT when the address has an account already. */
export async function createUser(ctx: Context, input: CreateUserInput): Promise<string> {
  const email = Address.safeParse(input.email);
  if (!email.success) throw invalidRequest("email", firstOf(email.error.issues).message);
  const name = Name.safeParse(input.name);
  if (!name.success) throw invalidRequest("name", firstOf(name.error.issues).message);
  const id = ctx.newId();
  try {
    await insertUser(ctx.db, {
      id,
      email: email.data,
      name: name.data,
      bio: input.bio ?? "",
      role: input.role ?? "user",
      plan: input.plan ?? "free",
      emailVerifiedAt: (input.emailVerified ?? true) ? ctx.now() : null,
      verified: input.verified ?? false,
      passwordHash: input.passwordHash ?? null,
      demo: input.demo ?? false,
      createdAt: ctx.now(),
    });
  } catch (error) {
    if (!hasSqlState(error, UNIQUE_VIOLATION)) throw error;
    throw new ApiError("CONFLICT", "An account with this address exists already.", { field: "email" });
  }
  return id;
}

/** By id (`usr_…`) or email address. */
export async function findUser(ctx: Context, idOrEmail: string) {
  const id = toUuid("usr", idOrEmail);
  const user = id ? await findUserById(ctx.db, id) : await findUserByEmail(ctx.db, idOrEmail);
  if (!user) throw new ApiError("NOT_FOUND", `No account has the id or address ${idOrEmail}.`);
  return user;
}

/** Returns what products show of their author, and the role for `promoteToSeller`. */
export const lockAuthor = (tx: Tx, userId: string) => lockAuthorRow(tx, userId);

/** The first product makes a user a seller. */
export async function promoteToSeller(tx: Tx, { id, role }: { id: string; role: Role }): Promise<void> {
  if (role === "user") await updateRoleToSeller(tx, id);
}

/** The plan cannot change until the transaction ends. */
export const lockPlan = async (tx: Tx, userId: string): Promise<Plan> =>
  (await lockPlanOfUser(tx, userId)).plan;

export const setPlan = (tx: Tx, userId: string, plan: Plan) => updatePlanOfUser(tx, userId, plan);

export const toUserId = (uuid: string) => toId("usr", uuid);
