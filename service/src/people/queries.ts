import type { Role } from "@stoa/contract";
import type { Queries } from "../db/database.ts";

export interface NewUser {
  id: string;
  email: string;
  name: string;
  bio: string;
  role: Role;
  plan: string;
  verified: boolean;
  demo: boolean;
  created_at: Date;
}

export const insertUser = (db: Queries, user: NewUser) => db.insertInto("users").values(user).execute();

export const findUserById = (db: Queries, id: string) =>
  db
    .selectFrom("users")
    .select(["id", "email", "name", "role", "verified"])
    .where("id", "=", id)
    .executeTakeFirst();

export const findUserByEmail = (db: Queries, email: string) =>
  db
    .selectFrom("users")
    .select(["id", "email", "name", "role", "verified"])
    .where((row) => row(row.fn("lower", ["email"]), "=", email.toLowerCase()))
    .executeTakeFirst();

export const markSeller = (db: Queries, userId: string) =>
  db
    .updateTable("users")
    .set({ role: "seller" })
    .where("id", "=", userId)
    .where("role", "=", "user")
    .execute();
