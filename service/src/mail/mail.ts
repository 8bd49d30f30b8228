import type { Context } from "../context.ts";
import type { Queries } from "../db/database.ts";
import type { Letter } from "./letter.ts";

const sealContext = (id: string) => `mail|${id}`;

/** Writes a letter in the caller's transaction; a job sends it after the commit, so that nobody waits for a mail server. */
export async function sendMail(ctx: Context, tx: Queries, recipient: string, letter: Letter): Promise<void> {
  const id = ctx.newId();
  await tx
    .insertInto("mails")
    .values({
      id,
      recipient,
      sealed_letter: ctx.vault.seal(JSON.stringify(letter), sealContext(id)),
      created_at: ctx.now(),
    })
    .execute();
}
