import { Handle } from "@stoa/contract";
import { digestOf } from "../../core/digest.ts";
import { ApiError } from "../../core/errors.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { hasSqlState, UNIQUE_VIOLATION } from "../../platform/db/sql-state.ts";
import { findIdByHandle, insertRetiredHandle, isHandleRetired, updateAccount } from "./queries.ts";

/** Throws CONFLICT for a handle of another account, also of a closed one, so that links to it stay right. */
export async function setHandle(tx: Tx, userId: string, handle: string): Promise<void> {
  try {
    await updateAccount(tx, userId, { handle });
  } catch (error) {
    if (!hasSqlState(error, UNIQUE_VIOLATION)) throw error;
    throw handleTaken();
  }
  if (await isHandleRetired(tx, digestOf(handle))) throw handleTaken();
}

const handleTaken = () =>
  new ApiError("CONFLICT", "Another account has this handle. Choose another one.", { field: "handle" });

export const retireHandle = (tx: Tx, handle: string) => insertRetiredHandle(tx, digestOf(handle));

/** In any case. null: no account has it. */
export async function findUserIdByHandle(db: Queries, text: string): Promise<string | null> {
  const handle = Handle.safeParse(text);
  return handle.success ? findIdByHandle(db, handle.data) : null;
}
