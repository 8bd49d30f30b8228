import { createHmac, randomBytes } from "node:crypto";
import { type Caller, type Context, callerIdOf, isMember } from "../../core/context.ts";
import { dayOf } from "../../core/dates.ts";
import { sealedColumn } from "../../platform/db/sealed-columns.ts";
import { addViews, deleteSalts, deleteViewers, findOrCreateSalt, type ViewRow } from "./view-queries.ts";

declare module "../../core/context.ts" {
  interface Context {
    views: ViewBuffer;
  }
}

/** Further views are dropped while the database is unavailable. */
const MAX_WAITING = 20_000;
const INSERT_BATCH_SIZE = 1_000;
const MAX_REMEMBERED = 20_000;
const SALT_BYTES = 32;
const DIGEST_BYTES = 16;
/** A node may still buffer views of the previous day before this. */
const CLOSED_AFTER_MS = 3_600_000;
const DELETE_BATCH_SIZE = 5_000;

const sealContext = (day: string) => `views|${day}`;

export const sealedSalts = sealedColumn({
  table: "view_salts",
  column: "sealed_salt",
  key: { day: "date" },
  bound: { day: "t.day" },
  contextOf: ({ day }) => sealContext(day),
});

interface View {
  productId: string;
  day: string;
  viewer: string;
  /** The user agent of a guest; null for a user, whose views always count. */
  visitorsAgent: string | null;
}

/** Buffers views: one statement every half second instead of one per read. A crash loses half a second of views. */
export class ViewBuffer {
  readonly #waiting = new Map<string, View>();
  /** Names of written views of one day: repeating them would write nothing. */
  readonly #written = { day: "", names: new Set<string>() };
  #salt: { day: string; bytes: Buffer } | null = null;
  #lost = 0;
  #writing: Promise<void> = Promise.resolve();

  add(view: View): void {
    const name = nameOf(view);
    if (this.#written.names.has(name)) return;
    if (this.#waiting.size < MAX_WAITING) this.#waiting.set(name, view);
    else if (!this.#waiting.has(name)) this.#lost++;
  }

  /** Waits for a running write first. Views that could not be written stay in the buffer. */
  flush(ctx: Context): Promise<void> {
    this.#writing = this.#writing.catch(() => {}).then(() => this.#flush(ctx));
    return this.#writing;
  }

  async #flush(ctx: Context): Promise<void> {
    this.#tellLost(ctx);
    const views = [...this.#waiting.values()];
    this.#waiting.clear();
    while (views.length > 0) {
      try {
        this.#remember(await this.#write(ctx, views.slice(0, INSERT_BATCH_SIZE)));
      } catch (error) {
        for (const view of views) this.add(view);
        throw error;
      }
      views.splice(0, INSERT_BATCH_SIZE);
    }
  }

  #remember(views: View[]): void {
    const { names } = this.#written;
    for (const view of views) {
      if (this.#written.day !== view.day || names.size >= MAX_REMEMBERED) names.clear();
      this.#written.day = view.day;
      names.add(nameOf(view));
    }
  }

  #tellLost({ log }: Context): void {
    if (this.#lost > 0) log.warn({ lost: this.#lost }, "more views than may wait: some are not counted");
    this.#lost = 0;
  }

  /** Returns the views without those of bots. */
  async #write(ctx: Context, views: View[]): Promise<View[]> {
    const rows: ViewRow[] = [];
    const people = await dropBots(views);
    for (const { productId, day, viewer } of people) {
      const salt = await this.#saltOf(ctx, day);
      if (salt) rows.push({ productId, day, viewer: digestOf(salt, productId, viewer) });
    }
    await addViews(ctx.db, rows);
    return people;
  }

  /** Cached for the last day, which changes at midnight. null: the day is closed. */
  async #saltOf({ db, vault }: Context, day: string): Promise<Buffer | null> {
    if (this.#salt?.day === day) return this.#salt.bytes;
    const context = sealContext(day);
    const fresh = vault.seal(randomBytes(SALT_BYTES).toString("base64url"), context);
    const sealed = await findOrCreateSalt(db, day, fresh);
    if (sealed === null) return null;
    const bytes = Buffer.from(vault.open(sealed, context), "base64url");
    this.#salt = { day, bytes };
    return bytes;
  }
}

const nameOf = ({ productId, day, viewer }: View) => `${productId} ${day} ${viewer}`;

/** Includes the product, so that the views of one viewer cannot be linked. */
const digestOf = (salt: Buffer, productId: string, viewer: string): Buffer =>
  createHmac("sha256", salt).update(`${productId} ${viewer}`).digest().subarray(0, DIGEST_BYTES);

/** Runs outside the request. The list of bots is loaded with the first visitor. */
async function dropBots(views: View[]): Promise<View[]> {
  if (views.every(({ visitorsAgent }) => visitorsAgent === null)) return views;
  const { isbot } = await import("isbot");
  return views.filter(({ visitorsAgent }) => visitorsAgent === null || !isbot(visitorsAgent));
}

export interface Visit {
  userAgent: string | null;
  isPrefetch: boolean;
}

/** Counts one view per viewer, product and UTC day. Reads by the author, and by programs without an account, do not count. */
export function recordView(
  ctx: Context,
  caller: Caller,
  product: { id: string; authorId: string },
  { userAgent, isPrefetch }: Visit,
): void {
  const viewer = callerIdOf(caller);
  if (viewer === product.authorId) return;
  if (!isMember(caller) && (isPrefetch || !userAgent)) return;
  const visitorsAgent = isMember(caller) ? null : userAgent;
  ctx.views.add({ productId: product.id, day: dayOf(ctx.now()), viewer, visitorsAgent });
}

export const flushViews = (ctx: Context) => ctx.views.flush(ctx);

export async function eraseViewers(ctx: Context): Promise<void> {
  const before = dayOf(new Date(ctx.now().getTime() - CLOSED_AFTER_MS));
  await deleteSalts(ctx.db, before);
  let deleted: number;
  do deleted = await deleteViewers(ctx.db, before, DELETE_BATCH_SIZE);
  while (deleted === DELETE_BATCH_SIZE);
}
