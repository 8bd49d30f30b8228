import type { ProductCard } from "@stoa/sdk";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { formatCount } from "../../lib/format.ts";
import { exportProducts } from "./export-button.tsx";
import { PriceDialog } from "./price-dialog.tsx";
import { type Bulk, changePrices, DELETE, PUBLISH, UNPUBLISH } from "./use-bulk.ts";

interface BulkBarProps {
  picked: ProductCard[];
  bulk: Bulk;
  onDone: () => void;
}

const OFF_SALE: ReadonlySet<string> = new Set(["draft", "unpublished", "rejected"]);

/** What can be done with the chosen rows. */
export function BulkBar({ picked, bulk, onDone }: BulkBarProps) {
  const { progress, question, ask, start } = bulk;
  const isBusy = progress !== null;
  const offSale = picked.filter(({ status }) => OFF_SALE.has(status));
  const onSale = picked.filter(({ status }) => status === "published");
  return (
    <>
      {(picked.length > 0 || isBusy) && (
        <section className="products-bulk" aria-label="Chosen products" aria-live="polite">
          <b className="num">
            {isBusy
              ? `${formatCount(progress.done)} of ${formatCount(progress.total)} done`
              : `${formatCount(picked.length)} chosen`}
          </b>
          <button
            type="button"
            className="btn s"
            disabled={isBusy || offSale.length === 0}
            onClick={() => void start(offSale, PUBLISH)}
          >
            Publish {formatCount(offSale.length)}
          </button>
          <button
            type="button"
            className="btn s"
            disabled={isBusy || onSale.length === 0}
            onClick={() => void start(onSale, UNPUBLISH)}
          >
            Take {formatCount(onSale.length)} off sale
          </button>
          <button
            type="button"
            className="btn s"
            disabled={isBusy}
            onClick={() => ask({ kind: "price", products: picked })}
          >
            Change price
          </button>
          <button
            type="button"
            className="btn s"
            disabled={isBusy}
            onClick={() => void exportProducts(picked)}
          >
            Export
          </button>
          <button
            type="button"
            className="btn s danger"
            disabled={isBusy}
            onClick={() => ask({ kind: "delete", products: picked })}
          >
            Delete
          </button>
          <button type="button" className="btn s quiet" disabled={isBusy} onClick={onDone}>
            Choose none
          </button>
        </section>
      )}
      {question?.kind === "delete" && (
        <DeleteDialog
          products={question.products}
          onConfirm={() => {
            ask(null);
            void start(question.products, DELETE);
          }}
          onClose={() => ask(null)}
        />
      )}
      {question?.kind === "price" && (
        <PriceDialog
          products={question.products}
          onChange={(change) => {
            ask(null);
            void start(question.products, changePrices(change));
          }}
          onClose={() => ask(null)}
        />
      )}
    </>
  );
}

interface DeleteDialogProps {
  products: ProductCard[];
  onConfirm: () => void;
  onClose: () => void;
}

function DeleteDialog({ products, onConfirm, onClose }: DeleteDialogProps) {
  const sales = products.reduce((sum, { stats }) => sum + stats.purchases, 0);
  const [first] = products;
  const what =
    products.length === 1 && first ? `“${first.title}”` : `${formatCount(products.length)} products`;
  return (
    <ConfirmDialog
      title={`Delete ${what}?`}
      action={`Delete ${what}`}
      keep={products.length === 1 ? "Keep it" : "Keep them"}
      onConfirm={onConfirm}
      onClose={onClose}
    >
      <p>
        {sales === 0
          ? "Nobody bought it yet."
          : `${formatCount(sales)} ${sales === 1 ? "purchase was" : "purchases were"} made: buyers keep their copies.`}{" "}
        Nobody can buy {products.length === 1 ? "it" : "them"} again. This cannot be undone; taking off sale
        can.
      </p>
    </ConfirmDialog>
  );
}
