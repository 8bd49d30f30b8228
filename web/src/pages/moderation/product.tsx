import "./moderation.css";
import type { ModeratedProduct, ProductChecks, ProductDetail } from "@stoa/sdk";
import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { PersonLink } from "../../components/administration/links.tsx";
import { Cover } from "../../components/cover.tsx";
import { OpenIcon, UserIcon } from "../../components/icons.tsx";
import { NotFound } from "../../components/page-error.tsx";
import { PaneBack } from "../../components/pane-back.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { Time } from "../../components/time.tsx";
import { reasonLabel } from "../../lib/admin-statuses.ts";
import { formatCount, formatMoney } from "../../lib/format.ts";
import { productStatus } from "../../lib/product-status.ts";
import { productPath } from "../../lib/slug.ts";
import { useTitle } from "../../lib/use-title.ts";
import { checksQuery, moderatedQuery, reviewedQuery } from "../../queries/moderation.ts";
import { DecisionBar } from "./decision-bar.tsx";
import { hasFailedChecks, ProductCheckList } from "./product-check-list.tsx";
import { ProductDiff } from "./product-diff.tsx";
import { ScanChecks } from "./scan-checks.tsx";
import { SellerRecord } from "./seller-record.tsx";

const route = getRouteApi("/admin-shell/admin/moderation/$productId");

export default function Product() {
  const { productId } = route.useParams();
  const { data: moderated } = useSuspenseQuery(moderatedQuery(productId));
  const { data: product } = useSuspenseQuery(reviewedQuery(productId));
  const { data: checks } = useSuspenseQuery(checksQuery(productId));
  const client = useQueryClient();
  const reload = () => client.invalidateQueries({ queryKey: ["admin", "product", productId] });
  useTitle(`Moderation: ${product.title}`);
  if (!moderated) return <NotFound />;
  const openReports = moderated.openReports;
  return (
    // Another product starts with an empty reason.
    <article key={productId} className="review-page" aria-label={product.title}>
      <Link to="/admin/moderation" search={true} className="link phone-only row">
        <PaneBack>Queue</PaneBack>
      </Link>
      <Head product={product} moderated={moderated} approved={checks.approved} />
      <ProductCheckList product={product} checks={checks} moderated={moderated} />
      <ScanChecks scan={checks.scan} />
      <ProductDiff product={product} approved={checks.approved} />
      <SellerRecord moderated={moderated} checks={checks} />
      <History moderated={moderated} />
      <DecisionBar
        moderated={moderated}
        etag={product.etag}
        hasFailed={hasFailedChecks(product, checks, openReports)}
        onReload={() => void reload()}
      />
    </article>
  );
}

interface HeadProps {
  product: ProductDetail;
  moderated: ModeratedProduct;
  approved: ProductChecks["approved"];
}

function Head({ product, moderated, approved }: HeadProps) {
  const { stats, version } = product;
  const [tone, label] = productStatus(moderated);
  const isUpdate = approved !== null && approved.version !== version;
  return (
    <header className="row wrap between review-head">
      <div className="row">
        <Cover product={product} image={product.images[0] ?? null} className="t" />
        <div className="stack">
          <h2 dir="auto">{product.title}</h2>
          <div className="row wrap sm soft">
            <StatusTag tone={tone}>{label}</StatusTag>
            <PersonLink person={moderated.seller} />
            <span className="num">{formatMoney(moderated.price, moderated.currency)}</span>
            <span>
              version {version}
              {isUpdate && ` after ${approved.version}`}
            </span>
            <span>
              {formatCount(stats.purchases)} {stats.purchases === 1 ? "sale" : "sales"}
            </span>
          </div>
        </div>
      </div>
      <div className="row wrap">
        <a className="btn" href={`/p/${productPath(product)}`} target="_blank" rel="noopener">
          <OpenIcon /> Buyer's view
        </a>
        <Link to="/admin/users/$userId" params={{ userId: moderated.seller.id }} className="btn">
          <UserIcon /> Seller
        </Link>
      </div>
    </header>
  );
}

const ACTIONS: Record<string, string> = {
  "product.submitted": "Submitted",
  "product.published": "Published",
  "product.approved": "Approved",
  "product.rejected": "Rejected",
  "product.withdrawn": "Withdrawn",
  "product.unpublished": "Unpublished",
  "product.suspended": "Suspended",
  "product.reinstated": "Reinstated",
  "product.deleted": "Deleted",
};
const ACTORS: Record<string, string> = {
  author: "the seller",
  moderator: "a moderator",
  operator: "the operator",
};

function History({ moderated: { history } }: { moderated: ModeratedProduct }) {
  if (history.length === 0) return null;
  return (
    <section className="beam thin stack">
      <h3>History</h3>
      <ul className="review-history">
        {history.map(({ action, at, by, reason, reasonCode }) => (
          <li key={at + action} className="review-move">
            <span>
              {ACTIONS[action] ?? action} <span className="soft">by {ACTORS[by] ?? by}</span>
              {reasonCode && <span className="soft">: {reasonLabel(reasonCode)}</span>}
              {reason && <p className="sm soft preserve-lines">{reason}</p>}
            </span>
            <Time iso={at} className="sm soft nowrap" />
          </li>
        ))}
      </ul>
    </section>
  );
}
