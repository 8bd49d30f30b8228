import { type Caller, type Context, viewerOf } from "../context.ts";
import type { Database } from "../db/database.ts";
import { addViews, type View } from "./queries.ts";

/**
 * Views that wait to be written: one statement for all of a second instead of one a read. A crash loses that
 * second of views, and no money.
 */
export class ViewBuffer {
  readonly #waiting = new Map<string, View>();

  add(view: View): void {
    this.#waiting.set(`${view.productId} ${view.day} ${view.viewer}`, view);
  }

  /** Writes what waits. What could not be written waits on. */
  async flush(db: Database): Promise<void> {
    if (this.#waiting.size === 0) return;
    const views = [...this.#waiting.values()];
    this.#waiting.clear();
    try {
      await addViews(db, views);
    } catch (error) {
      for (const view of views) this.add(view);
      throw error;
    }
  }
}

/** Counts one view per viewer, product and UTC day; the author's own reads count never. */
export function noteView(ctx: Context, caller: Caller, product: { id: string; authorId: string }): void {
  const viewer = viewerOf(caller);
  if (viewer === product.authorId) return;
  ctx.views.add({ productId: product.id, day: ctx.now().toISOString().slice(0, 10), viewer });
}

export const flushViews = (ctx: Context) => ctx.views.flush(ctx.db);
