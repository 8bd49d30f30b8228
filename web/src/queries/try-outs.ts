import { ApiError, type TryOut } from "@stoa/sdk";
import { queryOptions } from "@tanstack/react-query";
import { stoa } from "../api.ts";

/** How visitors may try a product, for its seller; null: they may not. */
export const tryOutQuery = (productId: string) =>
  queryOptions({
    queryKey: ["try-out", productId],
    queryFn: async ({ signal }): Promise<TryOut | null> => {
      try {
        return await stoa.tryOuts.get(productId, { signal });
      } catch (error) {
        if (error instanceof ApiError && error.code === "INVALID_STATE") return null;
        throw error;
      }
    },
  });
