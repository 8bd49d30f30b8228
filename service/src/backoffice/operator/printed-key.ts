import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { permissions } from "@stoa/contract";
import { authenticateApiKey } from "../../accounts/api-keys/authenticate-key.ts";
import { createKeyAsOperator } from "../../accounts/api-keys/keys.ts";
import { createUser, findUser } from "../../accounts/people/users.ts";
import type { Context } from "../../core/context.ts";

const DEFAULT_USER = { email: "newcomer@stoa.example", name: "Newcomer", plan: "business" } as const;
const NAME = "printed at the start";
const LIFETIME_HOURS = 24;

export interface PrintedKey {
  key: string;
  expiresAt: Date;
}

/** Reuses the key of the previous start while it works. The data folder stores it, readable for its owner only. */
export async function findOrCreatePrintedKey(ctx: Context): Promise<PrintedKey> {
  const file = join(ctx.config.dataDir, "printed-key.json");
  const stored = await readStoredKey(file);
  if (stored && stored.expiresAt > ctx.now() && (await authenticateApiKey(ctx, stored.key))) return stored;
  const made = await createPrintedKey(ctx);
  try {
    await mkdir(ctx.config.dataDir, { recursive: true, mode: 0o700 });
    await writeFile(file, JSON.stringify(made), { mode: 0o600 });
  } catch (error) {
    ctx.log.warn({ err: error }, "the printed key was not saved: the next start prints another one");
  }
  return made;
}

async function readStoredKey(file: string): Promise<PrintedKey | null> {
  try {
    const { key, expiresAt } = JSON.parse(await readFile(file, "utf8"));
    return { key: String(key), expiresAt: new Date(expiresAt) };
  } catch {
    return null;
  }
}

async function createPrintedKey(ctx: Context): Promise<PrintedKey> {
  const account = await findUser(ctx, DEFAULT_USER.email).catch(() => null);
  const userId = account?.id ?? (await createUser(ctx, DEFAULT_USER));
  const expiresAt = new Date(ctx.now().getTime() + LIFETIME_HOURS * 3_600_000);
  const { key } = await createKeyAsOperator(ctx, {
    userId,
    name: NAME,
    permissions: [...permissions],
    expiresAt,
  });
  return { key, expiresAt };
}
