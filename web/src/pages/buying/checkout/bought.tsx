import type { PurchaseDetail } from "@stoa/sdk";
import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { PlayIcon } from "../../../components/icons.tsx";
import { Id } from "../../../components/id.tsx";
import { StatusTag } from "../../../components/status-tag.tsx";
import { orderAmount, refundRule } from "../../../lib/orders.ts";
import { useTitle } from "../../../lib/use-title.ts";
import { productQuery } from "../../../queries/market.ts";
import { OrderLines } from "./paid-summary.tsx";
import { ProductLine } from "./summary.tsx";

/** The end of a purchase: a page, not a message that goes away. */
export function Bought({ purchase }: { purchase: PurchaseDetail }) {
  const { product, orderId, receipt } = purchase;
  useTitle(`Bought ${product.title}`);
  const heading = useRef<HTMLHeadingElement>(null);
  const client = useQueryClient();
  useEffect(() => heading.current?.focus(), []);
  useEffect(() => {
    // What the client knew about the product is from before the purchase. The next page that needs the product reads it.
    client.removeQueries({ queryKey: productQuery(product.id).queryKey });
  }, [client, product.id]);
  const isFree = purchase.amount === 0;
  const major = product.version.split(".")[0];
  return (
    <main className="checkout narrow" id="content">
      <section className="beam bought">
        <StatusTag tone="good">{isFree ? "Free copy" : `Paid ${orderAmount(purchase)}`}</StatusTag>
        <h1 className="title" tabIndex={-1} ref={heading}>
          It is yours.
        </h1>
        <p className="soft">
          All {major}.x updates are included. {refundRule(purchase.refundable)}
        </p>
        <div className="bought-product">
          <ProductLine product={product} />
          <Link className="btn primary l" to="/run/$productId" params={{ productId: product.id }}>
            <PlayIcon /> Run it now
          </Link>
        </div>
      </section>
      <section className="beam thin">
        <h3>Your order</h3>
        <OrderLines purchase={purchase} />
        <div className="row between wrap sm">
          <span className="soft">
            Order <Id id={orderId} />
          </span>
          <span className="row wrap">
            {receipt.url && (
              <a className="link" href={receipt.url} target="_blank" rel="noopener">
                Receipt
              </a>
            )}
            {receipt.pdf && (
              <a className="link" href={receipt.pdf} target="_blank" rel="noopener">
                Receipt, PDF
              </a>
            )}
            <Link className="link" to="/orders/$orderId" params={{ orderId }}>
              Order and refund
            </Link>
            <Link className="link" to="/library">
              Library
            </Link>
          </span>
        </div>
      </section>
    </main>
  );
}
