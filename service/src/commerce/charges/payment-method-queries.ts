import type { Context } from "../../core/context.ts";
import type { PaymentMethod } from "../../integrations/payments/payments.ts";
import { compileOnce } from "../../platform/db/compile-once.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";

export async function findDefaultMethod(db: Queries, userId: string): Promise<string | null> {
  const { rows } = await findDefaultMethodRow(db, { userId });
  return rows[0]?.methodId ?? null;
}

const findDefaultMethodRow = compileOnce((db, { userId }: { userId: string }) =>
  db.selectFrom("paymentCustomers").select("defaultMethodId as methodId").where("userId", "=", userId),
);

export interface MethodRow extends PaymentMethod {
  createdAt: Date;
}

const methods = (db: Queries, userId: string) =>
  db.selectFrom("paymentMethods").select(["id", "brand", "last4", "createdAt"]).where("userId", "=", userId);

export const findMethod = (db: Queries, userId: string, id: string): Promise<MethodRow | undefined> =>
  methods(db, userId).where("id", "=", id).executeTakeFirst();

export const countMethods = (db: Queries, userId: string) =>
  db
    .selectFrom("paymentMethods")
    .where("userId", "=", userId)
    .select((row) => row.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();

export async function listMethods({ db }: Context, userId: string, paging: Paging): Promise<Page<MethodRow>> {
  const items = await methods(db, userId)
    .orderBy("createdAt", "desc")
    .orderBy("id", "desc")
    .limit(paging.limit)
    .offset(offsetOf(paging))
    .execute();
  return { items, total: (await countMethods(db, userId)).count };
}

/** Serializes changes of one user's methods. Returns the default method. */
export async function lockCustomer(tx: Tx, userId: string): Promise<string | null> {
  await tx
    .insertInto("paymentCustomers")
    .values({ userId })
    .onConflict((conflict) => conflict.column("userId").doNothing())
    .execute();
  const { methodId } = await tx
    .selectFrom("paymentCustomers")
    .select("defaultMethodId as methodId")
    .where("userId", "=", userId)
    .forUpdate()
    .executeTakeFirstOrThrow();
  return methodId;
}

export const setDefaultMethod = (tx: Tx, userId: string, methodId: string | null) =>
  tx
    .updateTable("paymentCustomers")
    .set({ defaultMethodId: methodId })
    .where("userId", "=", userId)
    .execute();

export const insertMethod = (tx: Tx, userId: string, { id, brand, last4 }: PaymentMethod, now: Date) =>
  tx.insertInto("paymentMethods").values({ id, userId, brand, last4, createdAt: now }).execute();

export const deleteMethod = (tx: Tx, userId: string, id: string) =>
  tx.deleteFrom("paymentMethods").where("userId", "=", userId).where("id", "=", id).execute();

export const deleteMethodsOf = (tx: Tx, userId: string) =>
  tx.deleteFrom("paymentMethods").where("userId", "=", userId).returning("id").execute();

export const isMethodStored = async (db: Queries, id: string): Promise<boolean> =>
  (await db.selectFrom("paymentMethods").select("id").where("id", "=", id).executeTakeFirst()) !== undefined;

/** Keeps the payout account, because the service may still owe a balance. */
export const clearDefaultMethod = (tx: Tx, userId: string) =>
  tx.updateTable("paymentCustomers").set({ defaultMethodId: null }).where("userId", "=", userId).execute();
