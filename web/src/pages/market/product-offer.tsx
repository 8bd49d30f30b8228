import type { ProductDetail } from "@stoa/sdk";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { lazy, type ReactNode, useState } from "react";
import { stoa } from "../../api.ts";
import { useCopy } from "../../components/copy-button.tsx";
import { FlagIcon, HeartFilledIcon, HeartIcon, ShareIcon } from "../../components/icons.tsx";
import { Part } from "../../components/part.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { formatCount, formatMoney, formatPercent } from "../../lib/format.ts";
import { languageName } from "../../lib/languages.ts";
import { providerName } from "../../lib/providers.ts";
import { productPath } from "../../lib/slug.ts";
import { showError, showToast } from "../../lib/toasts.ts";
import { isOnWishlistQuery } from "../../queries/market.ts";
import { signInUrl, useAccount } from "../../session.ts";
import { ScanBadges } from "./product-scan.tsx";

const ReportDialog = lazy(() => import("./report-dialog.tsx"));

interface OfferProps {
  product: ProductDetail;
  /** Another way to use it than to buy it. */
  children?: ReactNode;
}

/** The price, what the buyer gets for it, and what else can be done with the product. */
export function Offer({ product, children }: OfferProps) {
  const { price, currency, version } = product;
  const major = version.split(".")[0];
  return (
    <div className="panel buy">
      <div className="row between">
        <span className="price num">{formatMoney(price, currency)}</span>
        {price > 0 && <span className="soft sm">plus tax where due</span>}
      </div>
      <p className="soft sm">
        {price > 0 ? "One payment. " : ""}All updates of version {major} are included.
      </p>
      <Dependencies product={product} />
      <div className="row">
        <BuyButton product={product} />
        {!children && <WishButton product={product} />}
      </div>
      {children && (
        <div className="row">
          {children}
          <WishButton product={product} />
        </div>
      )}
      <Facts product={product} />
      {product.scan && <ScanBadges scan={product.scan} version={product.version} />}
      <Actions product={product} />
    </div>
  );
}

export function BuyButton({ product: { id, price, currency, access } }: { product: ProductDetail }) {
  if (access.owned)
    return (
      <Link to="/run/$productId" params={{ productId: id }} className="btn primary l wide">
        Run
      </Link>
    );
  return (
    <Link to="/checkout/$productId" params={{ productId: id }} className="btn primary l wide">
      {price === 0 ? "Get for free" : `Buy for ${formatMoney(price, currency)}`}
    </Link>
  );
}

/** What a workflow needs besides itself; each is a purchase of its own. */
function Dependencies({ product }: { product: ProductDetail }) {
  const missing = product.dependencies.filter(({ owned }) => !owned);
  if (missing.length === 0) return null;
  return (
    <div className="sm">
      <p className="soft">It runs these products. Buy each of them too:</p>
      <ul className="bullets">
        {missing.map(({ productId, title, price, currency }) => (
          <li key={productId} dir="auto">
            {title === null ? (
              "A product that is not on sale"
            ) : (
              <Link to="/p/$slug" params={{ slug: productPath({ id: productId, title }) }} className="link">
                {title}
              </Link>
            )}
            {price !== null && currency !== null && ` ${formatMoney(price, currency)}`}
          </li>
        ))}
      </ul>
    </div>
  );
}

function WishButton({ product }: { product: ProductDetail }) {
  const account = useAccount();
  const client = useQueryClient();
  const query = isOnWishlistQuery(product.id);
  const { data: isListed = false } = useQuery({ ...query, enabled: account !== null });
  const { mutate, isPending, variables } = useMutation({
    mutationFn: async (wanted: boolean): Promise<void> => {
      await (wanted ? stoa.wishlist.add(product.id) : stoa.wishlist.remove(product.id));
    },
    onSuccess: (_, wanted) => {
      client.setQueryData(query.queryKey, wanted);
      if (!wanted) showToast("Removed from your wishlist.", { undo: () => mutate(true) });
    },
    onError: (error) => showError("Your wishlist did not change", error),
    onSettled: () => client.invalidateQueries({ queryKey: ["wishlist"] }),
  });
  // The product is the reader's own already.
  if (product.access.owned) return null;
  const isOn = isPending ? variables : isListed;
  const icon = isOn ? <HeartFilledIcon size={20} /> : <HeartIcon size={20} />;
  if (account === null)
    return (
      <a className="btn l" href={signInUrl()} aria-label="Sign in to add it to your wishlist">
        {icon}
      </a>
    );
  return (
    <button
      type="button"
      className="btn l"
      aria-pressed={isOn}
      aria-label="On your wishlist"
      disabled={isPending}
      onClick={() => mutate(!isOn)}
    >
      {icon}
    </button>
  );
}

function Facts({ product }: { product: ProductDetail }) {
  const { compatibility, variables, type, refundDays, license, files, lang, scoreCard } = product;
  const facts: [string, string][] = [
    ["Runs with your key", compatibility.map(providerName).join(", ") || "any provider"],
    ["Input", type === "WORKFLOW" ? "a form" : variables.map(({ name }) => name).join(", ") || "none"],
    ["Refund", refundDays === 0 ? "not offered" : `${refundDays} days`],
    ["License", license ?? "not stated"],
  ];
  if (files && files.length > 0) facts.push(["Files", files.map(({ name }) => name).join(", ")]);
  // Of real runs: never among the tests of the score card.
  if (scoreCard && scoreCard.runs.n > 0)
    facts.push(["Failed runs", `${failedShare(scoreCard.runs)} of version ${scoreCard.version}`]);
  if (lang !== null) facts.push(["Language", languageName(lang)]);
  return (
    <dl>
      {facts.map(([term, fact]) => (
        <div key={term}>
          <dt>{term}</dt>
          <dd dir="auto">{fact}</dd>
        </div>
      ))}
    </dl>
  );
}

const failedShare = ({ failed, n }: { failed: number; n: number }): string =>
  `${formatPercent(failed / n)} of ${formatCount(n)}`;

function Actions({ product }: { product: ProductDetail }) {
  const { isCopied, copy } = useCopy(`${location.origin}/p/${productPath(product)}`);
  const account = useAccount();
  const [isReporting, report] = useState(false);
  return (
    <div className="row wrap actions">
      <ShowAsCode
        curl={`curl "${location.origin}/v1/products/${product.id}" \\\n  -H "Authorization: Bearer $STOA_API_KEY"`}
        sdk={`const product = await stoa.products.get("${product.id}");`}
      />
      <button type="button" className="btn quiet s" onClick={copy}>
        <ShareIcon /> {isCopied ? "Link copied" : "Share"}
      </button>
      {account === null ? (
        <a className="btn quiet s" href={signInUrl()}>
          <FlagIcon /> Report
        </a>
      ) : (
        <button type="button" className="btn quiet s" onClick={() => report(true)}>
          <FlagIcon /> Report
        </button>
      )}
      {isReporting && (
        <Part>
          <ReportDialog product={product} onClose={() => report(false)} />
        </Part>
      )}
    </div>
  );
}
