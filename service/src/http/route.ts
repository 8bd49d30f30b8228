import type { Data, Endpoint, Input } from "@stoa/contract";
import type { Caller, Context, Member } from "../context.ts";
import type { Page } from "../db/paging.ts";

/** JSON that is rendered already, such as a product's card. */
export class RawJson {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** An answer that says more than its data: another status, or an ETag that is not the data's digest. */
export class Answer<D> {
  readonly data: D;
  readonly status: 200 | 201 | 202 | undefined;
  readonly etag: string | undefined;
  constructor(data: D, how: { status?: 200 | 201 | 202; etag?: string }) {
    this.data = data;
    this.status = how.status;
    this.etag = how.etag;
  }
}

export interface RequestFacts {
  ifMatch: string | null;
  /**
   * Aborts when the client hangs up before it has its answer. null with an Idempotency-Key: then the work goes on
   * to its end, so that the retry gets the answer.
   */
  clientGone(): AbortSignal | null;
}

type CallerOf<E extends Endpoint> = E["access"] extends { who: "member" } ? Member : Caller;
type Result<E extends Endpoint> = E["list"] extends true
  ? Page<Data<E> | RawJson>
  : Data<E> | Answer<Data<E>>;

export type Handler<E extends Endpoint> = (
  ctx: Context,
  caller: CallerOf<E>,
  input: Input<E>,
  facts: RequestFacts,
) => Promise<Result<E>>;

export interface Route {
  endpoint: Endpoint;
  handle(ctx: Context, caller: Caller, input: never, facts: RequestFacts): Promise<unknown>;
}

/** Ties an endpoint of the contract to the verb that answers it. */
export const route = <E extends Endpoint>(endpoint: E, handle: Handler<E>): Route => ({
  endpoint,
  handle: handle as Route["handle"],
});
