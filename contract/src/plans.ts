import { z } from "zod";

export const plans = ["free", "pro", "business", "enterprise"] as const;
export type Plan = (typeof plans)[number];

/** So many requests in so many seconds; every quota of a plan holds at once. */
export const Quota = z
  .strictObject({
    requests: z.int().min(1).max(1_000_000_000),
    seconds: z
      .int()
      .min(1)
      .max(31 * 86_400),
  })
  .meta({ id: "Quota" });
export type Quota = z.infer<typeof Quota>;
