import "./account-view-strip.css";
import type { AccountView } from "@stoa/sdk";
import { stoa } from "../../api.ts";
import { formatMoment } from "../../lib/format.ts";
import { showError } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { useNow } from "../../lib/use-now.ts";
import { EyeIcon } from "../icons.tsx";

const CLOCK_MS = 5_000;

/** Stands above every page while an administrator views another account. */
export default function AccountViewStrip({ view }: { view: AccountView }) {
  const now = useNow(CLOCK_MS);
  const end = useAction({
    run: async () => await stoa.admin.view.end(),
    // Nothing of the other account may stay in the caches.
    onSuccess: () => location.assign(`/admin/users/${view.user.id}`),
    onError: (error) => showError("The view did not end", error),
  });
  const isOver = view.isOver || Date.parse(view.expiresAt) <= now;
  return (
    <div className="strip warning account-view" role="status">
      <EyeIcon size={20} />
      <span className="grow">
        {isOver ? (
          <>
            <strong>Your view as {view.user.name} is over.</strong> Until you end it, nothing can be changed.
          </>
        ) : (
          <>
            <strong>You view Stoa as {view.user.name}, read-only.</strong> Until{" "}
            {formatMoment(view.expiresAt)}. The audit log has an entry.
          </>
        )}
      </span>
      <button type="button" className="btn s" disabled={end.isPending} onClick={() => end.start()}>
        End the view
      </button>
    </div>
  );
}
