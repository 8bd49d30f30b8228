import type { CreateWebhookEndpoint } from "@stoa/sdk";
import { useQueryClient } from "@tanstack/react-query";
import { stoa } from "../api.ts";
import { webhooksQuery } from "../queries/webhooks.ts";
import { useAction } from "./use-action.ts";

/** Creates an endpoint; `data` has its secret, which the service shows once. */
export function useCreateWebhook() {
  const client = useQueryClient();
  return useAction({
    run: async (input: CreateWebhookEndpoint, idempotencyKey) =>
      await stoa.webhooks.create(input, { idempotencyKey }),
    onSuccess: () => client.invalidateQueries({ queryKey: webhooksQuery.queryKey }),
  });
}
