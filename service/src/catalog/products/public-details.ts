import { type Caller, type Context, isMember, viewOf } from "../../core/context.ts";
import { isAdmin } from "../../platform/http/authenticate.ts";
import { averageRating } from "../search/card.ts";
import { type ConfirmedProduct, confirmProducts } from "./confirmation-queries.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** Details of products as strangers read them, cached in this process. */
    publicDetails: PublicDetails;
  }
}

const MAX_BYTES = 32 * 1024 * 1024;
/** The overhead of an entry beside its bytes. */
const ENTRY_BYTES = 512;
const MAX_AT_ONCE = 100;

/** A rendered detail without its counters. */
export interface PublicDetail {
  beforeStats: Buffer;
  afterStats: Buffer;
  etag: string;
}

interface Entry extends PublicDetail {
  stamp: string;
}

interface Question {
  productId: string;
  readerId: string | null;
  answer: PromiseWithResolvers<ConfirmedProduct | undefined>;
}

/**
 * Caches details of products on sale as everybody reads them who is neither author, buyer nor administrator. Each use is
 * confirmed by the database: the stamp of an entry names the row versions from which it was rendered. Requests that
 * arrive together share the query.
 */
export class PublicDetails {
  /** The least recently used one is first. */
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;
  #questions: Question[] = [];

  /** undefined: this caller reads another detail than strangers do, or it contains more than its stamp covers. */
  async confirm(ctx: Context, caller: Caller, productId: string): Promise<ConfirmedProduct | undefined> {
    if (isAdmin(caller) || viewOf(caller)) return undefined;
    const readerId = isMember(caller) ? caller.userId : null;
    const product = await this.#ask(ctx, productId, readerId);
    return product?.entitled || product?.authorId === readerId ? undefined : product;
  }

  find({ id, stamp }: ConfirmedProduct): PublicDetail | undefined {
    const entry = this.#entries.get(id);
    if (!entry) return undefined;
    this.#drop(id, entry);
    if (entry.stamp !== stamp) return undefined;
    this.#add(id, entry);
    return entry;
  }

  /** The detail was read after the stamp. If a row changed in between, the stamp is never confirmed again. */
  store({ id, stamp }: ConfirmedProduct, detail: PublicDetail): void {
    const before = this.#entries.get(id);
    if (before) this.#drop(id, before);
    this.#add(id, { ...detail, stamp });
    for (const [oldId, old] of this.#entries) {
      if (this.#bytes <= MAX_BYTES) break;
      this.#drop(oldId, old);
    }
  }

  #add(id: string, entry: Entry): void {
    this.#entries.set(id, entry);
    this.#bytes += sizeOf(entry);
  }

  #drop(id: string, entry: Entry): void {
    this.#entries.delete(id);
    this.#bytes -= sizeOf(entry);
  }

  #ask(ctx: Context, productId: string, readerId: string | null): Promise<ConfirmedProduct | undefined> {
    const answer = Promise.withResolvers<ConfirmedProduct | undefined>();
    if (this.#questions.push({ productId, readerId, answer }) === 1) setImmediate(() => this.#send(ctx));
    return answer.promise;
  }

  #send(ctx: Context): void {
    const questions = this.#questions;
    this.#questions = [];
    for (let at = 0; at < questions.length; at += MAX_AT_ONCE)
      void answerAll(ctx, questions.slice(at, at + MAX_AT_ONCE));
  }
}

const sizeOf = ({ beforeStats, afterStats }: PublicDetail) =>
  beforeStats.length + afterStats.length + ENTRY_BYTES;

async function answerAll(ctx: Context, questions: Question[]): Promise<void> {
  try {
    const rows = await confirmProducts(ctx, questions);
    const byQuestion = new Map(rows.map((row) => [row.question, row]));
    for (const [at, { answer }] of questions.entries()) answer.resolve(byQuestion.get(at + 1));
  } catch (error) {
    for (const { answer } of questions) answer.reject(error);
  }
}

/** The stats of a detail as JSON. */
export const renderStats = ({ views, purchases, ratingSum, ratingCount }: ConfirmedProduct): string =>
  JSON.stringify({
    views,
    purchases,
    rating: averageRating(ratingSum, ratingCount),
    reviews: ratingCount,
  });
