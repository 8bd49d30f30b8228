import type { ProductCard } from "@stoa/sdk";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { Dialog, DialogButtons } from "../../components/dialog.tsx";
import { DownloadIcon } from "../../components/icons.tsx";
import { saveResponse } from "../../lib/save-file.ts";
import { showError } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";

/** All products as a file that the import reads. */
export function ExportButton() {
  const [isOpen, setOpen] = useState(false);
  const save = useAction({
    run: async (format: "jsonl" | "markdown") => await saveResponse(await stoa.products.export({ format })),
    onSuccess: () => setOpen(false),
    onError: (error) => showError("The products were not exported", error),
  });
  return (
    <>
      <button type="button" className="btn" onClick={() => setOpen(true)}>
        <DownloadIcon /> Export
      </button>
      {isOpen && (
        <Dialog title="Export all products" onClose={() => setOpen(false)}>
          <p className="soft">
            Each with the content of its newest version. The import reads both formats, also after you changed
            them.
          </p>
          <DialogButtons>
            <button type="button" className="btn" onClick={() => setOpen(false)}>
              Close
            </button>
            <button
              type="button"
              className="btn"
              disabled={save.isPending}
              onClick={() => save.start("markdown")}
            >
              Markdown (zip)
            </button>
            <button
              type="button"
              className="btn primary"
              disabled={save.isPending}
              onClick={() => save.start("jsonl")}
            >
              JSON Lines
            </button>
          </DialogButtons>
        </Dialog>
      )}
    </>
  );
}

/** Only these, as JSON Lines. */
export async function exportProducts(products: ProductCard[]): Promise<void> {
  const productIds = products.map(({ id }) => id).join(",");
  try {
    await saveResponse(await stoa.products.export({ format: "jsonl", productIds }));
  } catch (error) {
    showError("The products were not exported", error);
  }
}
