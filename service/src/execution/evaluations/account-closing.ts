import type { Tx } from "../../platform/db/database.ts";
import { deleteOfUser } from "./queries.ts";

/** The outputs are texts of the account's runs, and a product that is off sale shows no score card. */
export const deleteEvaluations = (tx: Tx, userId: string) => deleteOfUser(tx, userId);
