import {
  type Account,
  ApiError,
  type CreatePurchase,
  type ProductDetail,
  type PurchaseDetail,
  type PurchaseQuote,
} from "@stoa/sdk";
import {
  keepPreviousData,
  useIsMutating,
  useQuery,
  useQueryClient,
  useSuspenseQuery,
} from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { stoa } from "../../../api.ts";
import { Avatar } from "../../../components/avatar.tsx";
import { useEnteredCard } from "../../../components/card-entry.tsx";
import { AlertIcon, ChevronIcon } from "../../../components/icons.tsx";
import { ErrorStrip } from "../../../components/page-error.tsx";
import { saveDraft, takeDraft } from "../../../lib/drafts.ts";
import { describeError } from "../../../lib/errors.ts";
import { formatMoney } from "../../../lib/format.ts";
import { declineReason } from "../../../lib/orders.ts";
import { endIntent, idempotencyKeyOf } from "../../../lib/purchase-intent.ts";
import { productPath } from "../../../lib/slug.ts";
import { useAction } from "../../../lib/use-action.ts";
import { useTitle } from "../../../lib/use-title.ts";
import { paymentMethodsQuery } from "../../../queries/account.ts";
import { quoteQuery } from "../../../queries/buying.ts";
import { productQuery } from "../../../queries/market.ts";
import { signInUrl } from "../../../session.ts";
import { type Codes, CodesSection, termsOf } from "./codes.tsx";
import { CountrySection, SAVE_COUNTRY } from "./country.tsx";
import { MethodsSection, nextMethod } from "./methods.tsx";
import { Summary } from "./summary.tsx";

const route = getRouteApi("/checkout/$productId");

/** The columns of every step: what the buyer does, and the summary that stays in view. */
export function CheckoutPage({
  product,
  summary,
  children,
}: {
  product: { id: string; title: string };
  summary: ReactNode;
  children: ReactNode;
}) {
  useTitle(`Buy ${product.title}`);
  return (
    <main className="checkout" id="content">
      <nav className="crumb" aria-label="Path">
        <Link to="/search">Market</Link>
        <ChevronIcon />
        <span dir="auto">{product.title}</span>
        <ChevronIcon />
        <span>Checkout</span>
      </nav>
      <h1 className="title" dir="auto">
        Buy {product.title}
      </h1>
      <div className="columns">
        <div className="steps">{children}</div>
        {summary}
      </div>
    </main>
  );
}

/** What a visitor sees: product and price, and how to go on. */
export function VisitorCheckout({ productId }: { productId: string }) {
  const { data: product } = useSuspenseQuery(productQuery(productId));
  return (
    <CheckoutPage product={product} summary={<Summary product={product} {...listPriceOf(product)} />}>
      <section className="beam">
        <h2>Sign in</h2>
        <p className="soft">
          You get a link by email and come back here. A first sign-in makes your account: there is no form to
          fill in.
        </p>
        <a className="btn primary l" href={signInUrl()}>
          Sign in to buy
        </a>
      </section>
      <section className="beam">
        <h2>How buying works</h2>
        <ul className="bullets">
          <li>One payment; updates of version {product.version.split(".")[0]} are included.</li>
          <li>It runs here with your own provider key; your provider bills the runs.</li>
          <li>You can read and download what you bought.</li>
        </ul>
      </section>
    </CheckoutPage>
  );
}

const listPriceOf = ({ price, currency }: ProductDetail) => ({ price, currency });

interface CheckoutFormProps {
  productId: string;
  account: Account;
  /** The order that could not be paid. */
  declined: PurchaseDetail | null;
}

export function CheckoutForm(props: CheckoutFormProps) {
  const { data: product } = useSuspenseQuery(productQuery(props.productId));
  return product.access.reason === "author" ? (
    <OwnProduct product={product} />
  ) : (
    <BuyerCheckout product={product} {...props} />
  );
}

function BuyerCheckout({
  product,
  productId,
  account,
  declined,
}: CheckoutFormProps & { product: ProductDetail }) {
  const { data: methods } = useSuspenseQuery(paymentMethodsQuery);
  const { code, card } = route.useSearch();
  const failures = useFailures(declined, methods.data);
  /** undefined: the buyer has not chosen. null: the buyer adds a card. */
  const [chosenId, choose] = useState<string | null | undefined>(undefined);
  useEnteredCard(card, ({ id }) => choose(id));
  const draft = `checkout-${productId}`;
  const [codes, setCodes] = useState<Codes>(() => takeDraft<Codes>(draft) ?? codesOf(declined));
  const methodId = chosenId === undefined ? (nextMethod(methods.data, failures.ids)?.id ?? null) : chosenId;
  const { quote, isFinal, hasPriceChanged, ...quoting } = useQuote(product, codes, account.country);
  const isFree = quote?.lines.total === 0;
  const purchase: CreatePurchase = {
    ...termsOf(productId, codes),
    ...(methodId !== null && !isFree && { paymentMethodId: methodId }),
    ...(quote && { expectedTotal: quote.lines.total }),
  };
  const buy = useBuy(purchase, {
    onDeclined: (code) => {
      if (methodId === null) return;
      failures.add(methodId, code);
      choose(undefined);
    },
    onPriceChanged: quoting.refetch,
  });
  const summary = (
    <Summary
      product={product}
      quote={quote}
      {...listPriceOf(product)}
      purchase={purchase}
      pay={{
        label: payLabelOf(quote),
        busyLabel: isFree ? "Getting it" : "Paying",
        isBusy: buy.isPending || buy.isSuccess,
        isDisabled: !isFinal || !(isFree || methodId !== null),
        onPay: () => buy.start(),
      }}
    />
  );
  const isPriceNew = hasPriceChanged || codeOf(buy.error) === "PRICE_CHANGED";
  return (
    <CheckoutPage product={product} summary={summary}>
      {isPriceNew && <PriceChanged error={buy.error} />}
      <Failure error={buy.error} declineCode={failures.last} failedCount={failures.ids.size} />
      {quoting.error !== null && !isAboutCodes(quoting.error) && (
        <ErrorStrip error={quoting.error} onRetry={() => void quoting.refetch()} />
      )}
      <Buyer account={account} />
      {isFree ? (
        <section className="beam">
          <h2>Payment</h2>
          <p className="soft">Nothing is due: no payment method is needed.</p>
        </section>
      ) : (
        <MethodsSection
          methods={methods.data}
          chosenId={methodId}
          declined={failures.ids}
          onChoose={(id) => {
            choose(id);
            buy.reset();
          }}
          onLeave={() => saveDraft(draft, codes)}
        />
      )}
      <CodesSection
        productId={productId}
        country={account.country}
        codes={codes}
        quote={isFinal ? quote : undefined}
        initialCode={code}
        error={buy.error ?? quoting.error}
        onChange={(changed) => {
          setCodes(changed);
          buy.reset();
        }}
      />
      <CountrySection account={account} />
      <Dependencies product={product} />
    </CheckoutPage>
  );
}

function payLabelOf(quote: PurchaseQuote | undefined): string {
  if (quote === undefined) return "Pay";
  const { lines, currency, decimals } = quote;
  return lines.total === 0 ? "Get it for free" : `Pay ${formatMoney(lines.total, currency, decimals)}`;
}

/** The exact amounts of the purchase. A product that the buyer has meanwhile leads to its order. */
function useQuote(product: ProductDetail, codes: Codes, country: string | null) {
  const navigate = route.useNavigate();
  const isSaving = useIsMutating({ mutationKey: SAVE_COUNTRY }) > 0;
  const { data, error, isPlaceholderData, refetch } = useQuery({
    ...quoteQuery(termsOf(product.id, codes), country),
    placeholderData: keepPreviousData,
  });
  const current = isPlaceholderData ? undefined : data;
  const hasPriceChanged = usePriceChange(current, product.price, `${codes.discountCode} ${country}`);
  const ownedBy =
    error instanceof ApiError && error.code === "ALREADY_PURCHASED" ? String(error.details["orderId"]) : null;
  useEffect(() => {
    if (ownedBy !== null) void navigate({ search: { order: ownedBy }, replace: true });
  }, [ownedBy, navigate]);
  return {
    quote: data,
    /** Whether the quote is of these codes and this country. */
    isFinal: current !== undefined && error === null && !isSaving,
    hasPriceChanged,
    error,
    refetch,
  };
}

/** Whether the price differs from the one that this page showed before, by nothing that the buyer did. */
function usePriceChange(quote: PurchaseQuote | undefined, listPrice: number, terms: string): boolean {
  const [seen, setSeen] = useState({
    quote,
    terms,
    isNew: quote !== undefined && quote.lines.subtotal !== listPrice,
  });
  if (quote !== undefined && (quote !== seen.quote || terms !== seen.terms)) {
    const isOtherPrice = quote.lines.subtotal !== (seen.quote?.lines.subtotal ?? listPrice);
    const isOtherTotal = terms === seen.terms && quote.lines.total !== (seen.quote ?? quote).lines.total;
    setSeen({ quote, terms, isNew: isOtherPrice || isOtherTotal });
  }
  return seen.isNew;
}

const OwnProduct = ({ product }: { product: ProductDetail }) => (
  <CheckoutPage product={product} summary={<Summary product={product} {...listPriceOf(product)} />}>
    <section className="beam">
      <h2>This is your own product</h2>
      <p className="soft">You can run it without buying it.</p>
      <Link className="btn primary l" to="/run/$productId" params={{ productId: product.id }}>
        Run it
      </Link>
    </section>
  </CheckoutPage>
);

const codesOf = (order: PurchaseDetail | null): Codes => ({
  discountCode: order?.discountCode ?? null,
  referralCode: order?.referralCode ?? null,
});

/** The methods that were declined in this checkout. */
function useFailures(order: PurchaseDetail | null, methods: { id: string; brand: string; last4: string }[]) {
  const [failed, setFailed] = useState<ReadonlyMap<string, string | null>>(() => {
    const card = order?.paymentMethod ?? null;
    const method = card && methods.find((one) => one.brand === card.brand && one.last4 === card.last4);
    return new Map(order ? [[method?.id ?? "", order.declineCode]] : []);
  });
  return {
    ids: new Set(failed.keys()),
    last: [...failed.values()].at(-1),
    add: (id: string, code: string | null) =>
      setFailed((old) => {
        const others = [...old].filter(([other]) => other !== id);
        return new Map([...others, [id, code]]);
      }),
  };
}

interface BuyHandlers {
  onDeclined: (declineCode: string | null) => void;
  onPriceChanged: () => Promise<unknown>;
}

function useBuy(purchase: CreatePurchase, { onDeclined, onPriceChanged }: BuyHandlers) {
  const navigate = route.useNavigate();
  const client = useQueryClient();
  const showOrder = async (order: string) => {
    await client.invalidateQueries({ queryKey: ["purchases"], refetchType: "none" });
    await navigate({ search: { order }, replace: true });
  };
  return useAction({
    run: async () => {
      const sent = purchase;
      try {
        const { orderId } = await stoa.purchases.create(sent, { idempotencyKey: idempotencyKeyOf(sent) });
        endIntent(sent, null);
        return orderId;
      } catch (error) {
        endIntent(sent, error);
        const owned = error instanceof ApiError && error.code === "ALREADY_PURCHASED";
        if (owned) return String(error.details["orderId"]);
        if (error instanceof ApiError && error.code === "PRICE_CHANGED") await onPriceChanged();
        throw error;
      }
    },
    onSuccess: showOrder,
    onError: (error) => {
      if (!(error instanceof ApiError)) return;
      if (error.code === "INSUFFICIENT_FUNDS") onDeclined((error.details["declineCode"] as string) ?? null);
    },
  });
}

const codeOf = (error: Error | null) => (error instanceof ApiError ? error.code : null);

/** `error`: of the purchase that it stopped; then it takes the focus. */
function PriceChanged({ error }: { error: Error | null }) {
  const strip = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (error !== null) strip.current?.focus();
  }, [error]);
  return (
    <div className="strip warning" role="alert" tabIndex={-1} ref={strip}>
      <AlertIcon size={20} />
      <span className="grow">
        <b>The price has changed.</b> You were not charged. The summary shows the new price.
      </span>
    </div>
  );
}

/** What stopped the purchase, above the form; it takes the focus. */
function Failure({
  error,
  declineCode,
  failedCount,
}: {
  error: Error | null;
  declineCode: string | null | undefined;
  failedCount: number;
}) {
  const strip = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (error !== null || failedCount > 0) strip.current?.focus();
  }, [error, failedCount]);
  const code = codeOf(error);
  if (error === null && declineCode === undefined) return null;
  if (code === "PRICE_CHANGED") return null;
  if (error === null || code === "INSUFFICIENT_FUNDS")
    return (
      <div className="strip bad" role="alert" tabIndex={-1} ref={strip}>
        <AlertIcon size={20} />
        <div className="grow">
          <b>Your bank declined the card: {declineReason(declineCode ?? null)}.</b> You were not charged. Use
          another card, or try again after you spoke to the bank.
          {error !== null && <div className="mono soft">{describeError(error).requestId}</div>}
        </div>
      </div>
    );
  // Shown beside their fields.
  if (isAboutCodes(error)) return null;
  return <ErrorStrip error={error} />;
}

const isAboutCodes = (error: Error): boolean =>
  error instanceof ApiError &&
  (error.details.field === "discountCode" || error.details.field === "referralCode");

const Buyer = ({ account }: { account: Account }) => (
  <section className="beam">
    <div className="row between wrap">
      <h2>Buyer</h2>
      <a className="link sm" href={signInUrl()}>
        Use another account
      </a>
    </div>
    <div className="row buyer">
      <Avatar name={account.name} />
      <div>
        <div className="m" dir="auto">
          {account.name}
        </div>
        <div className="sm soft">{account.email}</div>
      </div>
    </div>
  </section>
);

/** Products that a workflow runs and the buyer needs too; each is a purchase of its own. */
function Dependencies({ product }: { product: ProductDetail }) {
  const missing = product.dependencies.filter(({ owned }) => !owned);
  if (missing.length === 0) return null;
  return (
    <section className="beam">
      <h2>Also needed</h2>
      <p className="soft">This workflow runs these products. Buy each of them, before or after.</p>
      <ul className="needed">
        {missing.map(({ productId, title, price, currency, onSale }) => (
          <li key={productId} className="row between wrap">
            {title === null ? (
              <span className="soft">A product that is not for sale</span>
            ) : (
              <Link
                to="/p/$slug"
                params={{ slug: productPath({ id: productId, title }) }}
                className="link"
                dir="auto"
              >
                {title}
              </Link>
            )}
            {onSale && price !== null && currency !== null && (
              <span className="num">{formatMoney(price, currency)}</span>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
