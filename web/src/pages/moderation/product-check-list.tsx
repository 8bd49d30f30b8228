import type { ModeratedProduct, ProductChecks, ProductDetail } from "@stoa/sdk";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { PersonLink } from "../../components/administration/links.tsx";
import { listHidden } from "../../components/hidden-characters.tsx";
import { AlertIcon, CheckIcon, FlagIcon } from "../../components/icons.tsx";
import { Time } from "../../components/time.tsx";
import { reasonLabel } from "../../lib/admin-statuses.ts";
import { formatCount, formatPercent } from "../../lib/format.ts";
import { rangeOf, wholePercent } from "../../lib/rates.ts";
import { hasAlarmingFindings } from "./scan-checks.tsx";

/** From here on, two products look like copies of each other. */
const COPY = 0.8;

type Duplicate = ProductChecks["duplicates"][number];

const likeness = ({ titleSimilarity, textSimilarity }: Duplicate) =>
  Math.max(titleSimilarity, textSimilarity);
const isCopy = (duplicate: Duplicate) => !duplicate.isSameSeller && likeness(duplicate) >= COPY;

/** Whether something speaks against the product: then no decision is suggested. */
export const hasFailedChecks = (
  product: ProductDetail,
  checks: ProductChecks,
  openReports: number,
): boolean =>
  openReports > 0 ||
  checks.warnings.length > 0 ||
  hasAlarmingFindings(checks) ||
  listHidden(product.description).length > 0 ||
  checks.duplicates.some(isCopy);

interface CheckListProps {
  product: ProductDetail;
  checks: ProductChecks;
  moderated: ModeratedProduct;
}

export const ProductCheckList = ({ product, checks, moderated }: CheckListProps) => (
  <section className="beam thin stack" aria-label="Checks">
    <h3>Checks</h3>
    <ul className="review-checks">
      <HiddenCheck product={product} />
      <WarningChecks checks={checks} />
      <DuplicateCheck checks={checks} />
      <MeasuredChecks checks={checks} />
      <ReportCheck moderated={moderated} />
    </ul>
  </section>
);

interface CheckProps {
  isGood: boolean;
  title: ReactNode;
  icon?: ReactNode;
  children?: ReactNode;
}

const Check = ({ isGood, title, icon, children }: CheckProps) => (
  <li className="review-check">
    <span className={isGood ? "good" : "bad"}>{icon ?? (isGood ? <CheckIcon /> : <AlertIcon />)}</span>
    <div className="stack">
      <span className={isGood ? "" : "b bad"}>{title}</span>
      {children && <div className="soft stack">{children}</div>}
    </div>
  </li>
);

function HiddenCheck({ product }: { product: ProductDetail }) {
  const found = [
    ...listHidden(product.content ?? "").map((hidden) => ({ ...hidden, field: "content" })),
    ...listHidden(product.description).map((hidden) => ({ ...hidden, field: "description" })),
  ];
  if (found.length === 0) return <Check isGood title="No hidden or bidirectional characters" />;
  return (
    <Check isGood={false} title="Hidden characters">
      {found.map(({ code, count, lines, field }) => (
        <span key={field + code}>
          {formatCount(count)} × <span className="hidden-character">{code}</span> in the {field},{" "}
          {lines.length === 1 ? "line" : "lines"} {lines.slice(0, 8).join(", ")}
          {lines.length > 8 && " and more"}
        </span>
      ))}
    </Check>
  );
}

/** Hidden characters have their own check, with their lines. */
const isAboutHidden = (reason: string) => reason.includes("invisible characters");

function WarningChecks({ checks }: { checks: ProductChecks }) {
  const warnings = checks.warnings.filter(({ reason }) => !isAboutHidden(reason));
  if (warnings.length === 0) return <Check isGood title="No template logic that a run would ignore" />;
  return warnings.map(({ field, reason }) => (
    <Check key={field + reason} isGood={false} title="A run would ignore a part">
      <span>
        <code>{field}</code> {reason}
      </span>
    </Check>
  ));
}

function DuplicateCheck({ checks: { duplicates, compared } }: { checks: ProductChecks }) {
  const copies = duplicates.filter(isCopy);
  const [closest] = duplicates;
  if (copies.length > 0)
    return (
      <Check isGood={false} title="Looks like a copy">
        {copies.map((copy) => (
          <DuplicateLine key={copy.id} duplicate={copy} />
        ))}
      </Check>
    );
  return (
    <Check isGood title={`No duplicate among ${formatCount(compared)} compared products`}>
      {closest && <DuplicateLine duplicate={closest} />}
    </Check>
  );
}

/** A drop within the intervals says nothing. */
const MeasuredChecks = ({ checks: { measured } }: { checks: ProductChecks }) =>
  measured.map(({ provider, model, before, after, isWorse }) =>
    before.rate && after.rate ? (
      <Check
        key={`${provider} ${model}`}
        isGood={!isWorse}
        title={`Pass rate ${wholePercent(before.rate.value)} → ${wholePercent(after.rate.value)} %, ${isWorse ? "worse beyond the intervals" : "not worse beyond the intervals"}`}
      >
        <span>
          <span dir="auto">{model ?? "The workflow"}</span>: version {before.version}{" "}
          {rangeOf(before.rate, before.n)}, now {rangeOf(after.rate, after.n)}
        </span>
      </Check>
    ) : null,
  );

const DuplicateLine = ({ duplicate }: { duplicate: Duplicate }) => (
  <span>
    <Link
      to="/admin/moderation/$productId"
      params={{ productId: duplicate.id }}
      search={(old: object) => old}
      className="link"
      dir="auto"
    >
      {duplicate.title}
    </Link>{" "}
    {duplicate.isSameSeller ? (
      "of the same seller"
    ) : (
      <>
        by <PersonLink person={duplicate.seller} />
      </>
    )}
    : title {formatPercent(duplicate.titleSimilarity)}, text {formatPercent(duplicate.textSimilarity)} alike
  </span>
);

function ReportCheck({ moderated: { reports, openReports } }: { moderated: ModeratedProduct }) {
  if (openReports === 0) return <Check isGood title="No open reports" />;
  return (
    <Check
      isGood={false}
      icon={<FlagIcon />}
      title={openReports === 1 ? "1 open report" : `${formatCount(openReports)} open reports`}
    >
      {reports.map(({ reporter, reasonCode, comment, createdAt }) => (
        <span key={(reporter?.id ?? "") + createdAt}>
          {reasonLabel(reasonCode)}
          {comment && <>: “{comment}”</>} {reporter ? <PersonLink person={reporter} /> : "The marketplace"},{" "}
          <Time iso={createdAt} />
        </span>
      ))}
    </Check>
  );
}
