import { contentPreview } from "@stoa/contract/content-preview";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Cover } from "../../components/cover.tsx";
import { Markdown } from "../../components/markdown.tsx";
import { ProductType, Stars } from "../../components/product-card.tsx";
import { formatMoney, formatPercent } from "../../lib/format.ts";
import { providerName } from "../../lib/providers.ts";
import { useDebounced } from "../../lib/use-debounced.ts";
import { saleQuoteQuery } from "../../queries/product-editor.ts";
import { useEditor } from "./editor-context.tsx";

/** The page and the card of the product as buyers will see them. */
export function BuyerView() {
  const [isCard, showCard] = useState(false);
  return (
    <section className="editor-pane editor-buyer" aria-label="Buyer's view">
      <div className="editor-head">
        <h2 className="h3">Buyer's view</h2>
        <span className="grow" />
        <fieldset className="seg s" aria-label="View">
          <button type="button" aria-pressed={!isCard} onClick={() => showCard(false)}>
            Page
          </button>
          <button type="button" aria-pressed={isCard} onClick={() => showCard(true)}>
            Card
          </button>
        </fieldset>
      </div>
      <div className="editor-buyer-page">{isCard ? <Card /> : <Page />}</div>
    </section>
  );
}

const SETTLE_MS = 400;

/** The parts of a sale at the price of the draft, once it is at rest. */
export function useSaleQuote(countries: string[]) {
  const { draft, state } = useEditor();
  const terms = { price: draft.price, currency: draft.currency, commission: draft.commission };
  const { price, currency, commission } = JSON.parse(useDebounced(JSON.stringify(terms), SETTLE_MS));
  const isValid = !state.errors.price && !state.errors.currency && !state.errors.commission;
  return useQuery({
    ...saleQuoteQuery(Number(price), currency, Math.round(Number(commission) * 100), countries),
    enabled: isValid && Number(price) > 0,
  });
}

export const usePrice = (): string => {
  const { draft } = useEditor();
  try {
    return Number(draft.price) > 0 ? formatMoney(Number(draft.price), draft.currency) : "No price";
  } catch {
    return `${draft.price} ${draft.currency}`;
  }
};

const UNTAXED = ["US"];

function Page() {
  const { draft, product } = useEditor();
  const price = usePrice();
  const { data: quote } = useSaleQuote(UNTAXED);
  const sale = quote?.countries[0];
  const image = product.gallery[0];
  return (
    <>
      <Cover product={product} image={image?.url ?? null} alt={image?.alt ?? ""} />
      <h3 className="editor-buyer-title" dir="auto">
        {draft.title}
      </h3>
      <div className="soft editor-buyer-text" dir="auto">
        <Markdown text={draft.description || "No description yet."} />
      </div>
      <div className="row wrap sm">
        <span className="tag">
          <ProductType type={product.type} />
        </span>
        <Stars average={product.stats.rating} count={product.stats.reviews} />
      </div>
      <div className="beam thin">
        <div className="row between wrap">
          <b className="editor-buyer-price num">{price}</b>
          <span className="btn s" aria-hidden="true">
            Buy for {price}
          </span>
        </div>
        {sale && quote && (
          <p className="xs soft num">
            You receive {formatMoney(sale.earnings, quote.currency)} after the{" "}
            {formatPercent(quote.feeBasisPoints / 10_000)} fee.
          </p>
        )}
      </div>
      <Facts />
    </>
  );
}

function Facts() {
  const { draft } = useEditor();
  const facts: [string, string][] = [
    ["Asks for", draft.variables.map(({ name }) => name).join(", ") || "nothing"],
    ["Runs with your key", draft.compatibility.map(providerName).join(", ") || "not chosen yet"],
    ["Preview", contentPreview(draft.preview, draft.content)],
    ...(draft.tags.length > 0 ? ([["Tags", draft.tags.join(", ")]] as [string, string][]) : []),
  ];
  return (
    <dl className="beam thin editor-facts">
      {facts.map(([term, fact]) => (
        <div key={term}>
          <dt className="label">{term}</dt>
          <dd className="sm" dir="auto">
            {fact}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Card() {
  const { draft, product } = useEditor();
  const { stats, author } = product;
  return (
    <div className="card editor-card">
      <Cover product={product} image={product.gallery[0]?.url ?? null} />
      <span className="row between">
        <strong className="cut" dir="auto">
          {draft.title}
        </strong>
        <span className="num b">{usePrice()}</span>
      </span>
      <span className="row sm soft who">
        <ProductType type={product.type} /> by
        <span className="cut" dir="auto">
          {author.name}
        </span>
      </span>
      <span className="sm row">
        <Stars average={stats.rating} count={stats.reviews} />
      </span>
    </div>
  );
}
