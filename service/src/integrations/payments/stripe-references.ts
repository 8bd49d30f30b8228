import type { Pool } from "pg";

/** Maps our ids to Stripe's. */
export interface StripeReferences {
  find(ourId: string): Promise<string | null>;
  /** Stores the first Stripe id for one of ours, and returns the stored one. */
  store(ourId: string, stripeId: string): Promise<string>;
}

/** References in `stripe_references`, which every process shares. */
export function postgresReferences(pool: Pool): StripeReferences {
  const find = async (ourId: string) => {
    const { rows } = await pool.query<{ stripe_id: string }>(
      "select stripe_id from stripe_references where our_id = $1",
      [ourId],
    );
    return rows[0]?.stripe_id ?? null;
  };
  return {
    find,
    async store(ourId, stripeId) {
      await pool.query(
        "insert into stripe_references (our_id, stripe_id) values ($1, $2) on conflict (our_id) do nothing",
        [ourId, stripeId],
      );
      return (await find(ourId)) ?? stripeId;
    },
  };
}
