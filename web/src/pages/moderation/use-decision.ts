import type { ModeratedProduct } from "@stoa/sdk";
import { useQueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { stoa } from "../../api.ts";
import { showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { parseQueueSearch, queueQuery } from "../../queries/moderation.ts";

const route = getRouteApi("/admin-shell/admin/moderation");

/** After a decision: the next product of the queue, or the queue if there is none. */
export function useNext(productId: string): (done: string) => Promise<void> {
  const client = useQueryClient();
  const search = parseQueueSearch({ ...route.useSearch() });
  const navigate = route.useNavigate();
  return async (done) => {
    showToast(done);
    const products = client.getQueryData(queueQuery(search).queryKey)?.data ?? [];
    const at = products.findIndex(({ id }) => id === productId);
    const next = at === -1 ? undefined : (products[at + 1] ?? products[at - 1]);
    if (next)
      await navigate({
        to: "/admin/moderation/$productId",
        params: { productId: next.id },
        search: (old) => old,
      });
    else await navigate({ to: "/admin/moderation", search: (old) => old });
    client.removeQueries({ queryKey: ["admin", "product", productId] });
    await Promise.all([
      client.invalidateQueries({ queryKey: ["admin", "products"] }),
      client.invalidateQueries({ queryKey: ["admin", "waiting"] }),
    ]);
  };
}

/** The decisions about a product that waits, and about its reports. */
export function useDecision({ id, title }: ModeratedProduct, etag: string | null) {
  const toNext = useNext(id);
  const headers: Record<string, string> = etag === null ? {} : { "if-match": etag };
  const approve = useAction({
    run: async (_, idempotencyKey) => await stoa.admin.products.approve(id, { headers, idempotencyKey }),
    onSuccess: () => toNext(`${title} is on sale.`),
  });
  const reject = useAction({
    run: async (reason: string, idempotencyKey) =>
      await stoa.admin.products.reject(id, { reason }, { idempotencyKey }),
    onSuccess: () => toNext(`${title} was rejected. The seller got the reason.`),
  });
  const dismiss = useAction({
    run: async (_, idempotencyKey) => await stoa.admin.products.dismissReports(id, { idempotencyKey }),
    onSuccess: () => toNext(`The reports of ${title} were dismissed.`),
  });
  return { approve, reject, dismiss };
}
