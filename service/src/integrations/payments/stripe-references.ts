import type { Pool } from "pg";

/** Which name of Stripe's stands for which of ours. */
export interface StripeReferences {
  find(ourId: string): Promise<string | null>;
  /** Keeps the first name that is given for an id, and answers the one that is kept. */
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
