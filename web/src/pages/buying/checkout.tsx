import "./checkout.css";
import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { isOpen, isOwned, purchaseQuery } from "../../queries/buying.ts";
import { useAccount } from "../../session.ts";
import { Bought } from "./checkout/bought.tsx";
import { CheckoutForm, VisitorCheckout } from "./checkout/form.tsx";
import { PaymentWait } from "./checkout/payment-wait.tsx";

const route = getRouteApi("/checkout/$productId");

export default function Checkout() {
  const { productId } = route.useParams();
  const { order } = route.useSearch();
  const account = useAccount();
  if (account === null) return <VisitorCheckout productId={productId} />;
  // A new product or order begins with an empty form.
  return order === undefined ? (
    <CheckoutForm key={productId} productId={productId} account={account} declined={null} />
  ) : (
    <OrderCheckout orderId={order} productId={productId} />
  );
}

/** The checkout of an order that exists: bought, waiting, or declined and open for another try. */
function OrderCheckout({ orderId, productId }: { orderId: string; productId: string }) {
  const account = useAccount();
  const { data: purchase } = useSuspenseQuery({
    ...purchaseQuery(orderId),
    staleTime: 0,
    refetchInterval: ({ state }) => (state.data && isOpen(state.data) ? 2_000 : false),
    refetchIntervalInBackground: true,
  });
  if (isOwned(purchase)) return <Bought purchase={purchase} />;
  if (isOpen(purchase)) return <PaymentWait purchase={purchase} />;
  if (account === null) return null;
  const declined = purchase.status === "refunded" ? null : purchase;
  return <CheckoutForm productId={productId} account={account} declined={declined} />;
}
