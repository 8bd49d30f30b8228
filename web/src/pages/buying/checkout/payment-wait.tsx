import type { PurchaseDetail } from "@stoa/sdk";
import { Link } from "@tanstack/react-router";
import { BankIcon, OpenIcon } from "../../../components/icons.tsx";
import { Id } from "../../../components/id.tsx";
import { StatusTag } from "../../../components/status-tag.tsx";
import { orderAmount, orderStatus } from "../../../lib/orders.ts";
import { CheckoutPage } from "./form.tsx";
import { PaidSummary } from "./paid-summary.tsx";

/** The order waits for the buyer's bank, or for the payment provider. The page asks every two seconds and goes on by itself. */
export function PaymentWait({ purchase }: { purchase: PurchaseDetail }) {
  const [tone, label] = orderStatus(purchase);
  return (
    <CheckoutPage
      product={purchase.product}
      summary={<PaidSummary purchase={purchase} waiting="Waiting for the payment" />}
    >
      <section className="beam waits" aria-live="polite">
        <StatusTag tone={tone}>{label}</StatusTag>
        {purchase.nextAction ? (
          <BankStep purchase={purchase} url={purchase.nextAction.url} />
        ) : (
          <>
            <h2>The payment is in progress</h2>
            <p className="soft">
              The payment provider has not answered yet. This page continues as soon as it does, and you are
              charged at most once.
            </p>
          </>
        )}
        <p className="sm soft">
          Order <Id id={purchase.orderId} /> is kept under{" "}
          <Link to="/orders" className="link">
            Orders
          </Link>
          . You can close this page.
        </p>
      </section>
    </CheckoutPage>
  );
}

function BankStep({ purchase, url }: { purchase: PurchaseDetail; url: string }) {
  return (
    <>
      <h2>Confirm the payment with your bank</h2>
      <p className="soft">
        Your bank wants to know that it is you who pays {orderAmount(purchase)}. This page continues as soon
        as the bank answers. You are not charged before that.
      </p>
      <div className="panel bank">
        <div className="row between wrap">
          <span className="row m">
            <BankIcon size={20} /> Page of your bank
          </span>
          <span className="xs faint">3-D Secure</span>
        </div>
        <div className="row wrap">
          <a className="btn primary" href={url} target="_blank" rel="noopener">
            <OpenIcon /> Open the bank's page
          </a>
          <Link
            to="/checkout/$productId"
            params={{ productId: purchase.product.id }}
            search={{ again: true, ...(purchase.discountCode && { code: purchase.discountCode }) }}
            className="btn"
          >
            Use another card
          </Link>
        </div>
      </div>
    </>
  );
}
