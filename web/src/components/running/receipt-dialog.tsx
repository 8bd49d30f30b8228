import type { SignedRunReceipt } from "@stoa/sdk";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { curlOf } from "../../lib/curl.ts";
import { saveFile } from "../../lib/save-file.ts";
import { showError } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { CopyButton } from "../copy-button.tsx";
import { Dialog, DialogButtons } from "../dialog.tsx";
import { DownloadIcon, ReceiptIcon } from "../icons.tsx";
import { CodeDetails } from "./code-details.tsx";

/** A signed statement about a run, for others. */
export function ReceiptButton({ executionId }: { executionId: string }) {
  const [receipt, setReceipt] = useState<SignedRunReceipt | null>(null);
  const { start, isPending } = useAction({
    run: async () => await stoa.ai.executions.receipt(executionId),
    onSuccess: setReceipt,
    onError: (error) => showError("The receipt was not made", error),
  });
  return (
    <>
      <button type="button" className="btn s" disabled={isPending} onClick={() => start()}>
        <ReceiptIcon /> Receipt
      </button>
      {receipt && (
        <ReceiptDialog executionId={executionId} receipt={receipt} onClose={() => setReceipt(null)} />
      )}
    </>
  );
}

interface ReceiptDialogProps {
  executionId: string;
  receipt: SignedRunReceipt;
  onClose: () => void;
}

function ReceiptDialog({ executionId, receipt, onClose }: ReceiptDialogProps) {
  const text = JSON.stringify(receipt, null, 2);
  const download = () => saveFile(`${executionId}-receipt.json`, "application/json", text);
  return (
    <Dialog title="Receipt of this run" onClose={onClose}>
      <p className="soft">
        It proves which version ran when, on which model, and what it cost, without the texts. With the salt
        and a text, others can check that the receipt is about that text.
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard must reach it. */}
      <pre className="codeblock wrap receipt-text" tabIndex={0}>
        {text}
      </pre>
      <CodeDetails
        curl={curlOf("GET", `/ai/executions/${executionId}/receipt`)}
        sdk={`const { receipt, salt } = await stoa.ai.executions.receipt("${executionId}");`}
      />
      <DialogButtons>
        <CopyButton text={text} className="btn" />
        <button type="button" className="btn" onClick={download}>
          <DownloadIcon /> Download
        </button>
        <button type="button" className="btn primary" onClick={onClose}>
          Done
        </button>
      </DialogButtons>
    </Dialog>
  );
}
