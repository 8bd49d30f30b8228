import type { ExecutionDetail } from "@stoa/sdk";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { curlOf } from "../../lib/curl.ts";
import { showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { executionQuery } from "../../queries/running.ts";
import { CopyButton } from "../copy-button.tsx";
import { Dialog, DialogButtons } from "../dialog.tsx";
import { ShareIcon } from "../icons.tsx";
import { ErrorStrip } from "../page-error.tsx";
import { CodeDetails } from "./code-details.tsx";

/** The public link to a run, which its owner makes and ends. */
export function ShareButton({ execution }: { execution: ExecutionDetail }) {
  const [isOpen, open] = useState(false);
  return (
    <>
      <button type="button" className="btn s" onClick={() => open(true)}>
        <ShareIcon /> {execution.share ? "Shared" : "Share"}
      </button>
      {isOpen && <ShareDialog execution={execution} onClose={() => open(false)} />}
    </>
  );
}

function ShareDialog({ execution, onClose }: { execution: ExecutionDetail; onClose: () => void }) {
  const { id, share } = execution;
  const client = useQueryClient();
  const { start, isPending, error } = useAction({
    run: async (isShared: boolean, idempotencyKey) => {
      if (isShared) await stoa.ai.executions.share(id, { idempotencyKey });
      else await stoa.ai.executions.unshare(id);
      await client.invalidateQueries({ queryKey: executionQuery(id).queryKey, exact: true });
    },
    onSuccess: (_, isShared) => !isShared && showToast("The link no longer works"),
  });
  return (
    <Dialog title={share ? "This run has a public link" : "Share this run"} onClose={onClose}>
      <p className="soft">
        Anyone with the link can read the input, the output, the model, its cost and the version, without your
        name. The link works until you end it or delete the run, at most 30 days after the run.
      </p>
      {error !== null && <ErrorStrip error={error} />}
      {share && (
        <div className="row share-link">
          <input
            className="input mono"
            readOnly
            aria-label="Public link"
            value={share.url}
            onFocus={(event) => event.target.select()}
          />
          <CopyButton text={share.url} label="Copy link" className="btn" />
        </div>
      )}
      <CodeDetails
        curl={curlOf("POST", `/ai/executions/${id}/share`)}
        sdk={`const { url } = await stoa.ai.executions.share("${id}");`}
      />
      <DialogButtons>
        <button type="button" className="btn" onClick={onClose}>
          Close
        </button>
        {share ? (
          <button type="button" className="btn danger" disabled={isPending} onClick={() => start(false)}>
            End the link
          </button>
        ) : (
          <button type="button" className="btn primary" disabled={isPending} onClick={() => start(true)}>
            Create the link
          </button>
        )}
      </DialogButtons>
    </Dialog>
  );
}
