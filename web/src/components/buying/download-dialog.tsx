import type { PurchaseDetail } from "@stoa/sdk";
import { isUnopened } from "../../lib/orders.ts";
import { Dialog, DialogButtons } from "../dialog.tsx";

interface DownloadDialogProps {
  purchase: PurchaseDetail;
  onClose: () => void;
}

/** The content of a purchase as a file; says first that a download ends the instant refund. */
export function DownloadDialog({ purchase, onClose }: DownloadDialogProps) {
  const { downloadUrl, product, refundable } = purchase;
  return (
    <Dialog title={`Download “${product.title}”`} onClose={onClose}>
      <p className="soft">The content of your version, with its variables.</p>
      {isUnopened(purchase) && refundable.amount > 0 && (
        <p>A download counts as opened: from then on, the seller decides about a refund.</p>
      )}
      {downloadUrl === null ? (
        <p className="ferr">You have no access to it any more.</p>
      ) : (
        <div className="row wrap">
          <a className="btn" href={downloadUrl} target="_blank" rel="noopener" onClick={onClose}>
            Markdown
          </a>
          <a className="btn" href={asJson(downloadUrl)} target="_blank" rel="noopener" onClick={onClose}>
            JSON
          </a>
        </div>
      )}
      <DialogButtons>
        <button type="button" className="btn quiet" onClick={onClose}>
          Close
        </button>
      </DialogButtons>
    </Dialog>
  );
}

function asJson(downloadUrl: string): string {
  const url = new URL(downloadUrl);
  url.searchParams.set("format", "json");
  return url.href;
}
