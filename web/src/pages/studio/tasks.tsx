import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { AlertIcon, CheckIcon, PlayIcon, ReviewIcon, UndoIcon, WalletIcon } from "../../components/icons.tsx";
import { ErrorStrip } from "../../components/page-error.tsx";
import { SkeletonRows } from "../../components/skeleton.tsx";
import { formatCount, formatMoney } from "../../lib/format.ts";
import { timeLeft } from "../../lib/orders.ts";
import { editorPath } from "../../lib/studio-links.ts";
import { useNow } from "../../lib/use-now.ts";
import { balancesQuery, tasksQuery } from "../../queries/studio.ts";

interface Task {
  key: string;
  icon: ReactNode;
  text: ReactNode;
  /** Such as its deadline. */
  note?: string;
  action: ReactNode;
}

/** What needs the seller, the one with a deadline first. */
export function Tasks() {
  const { data, error, refetch } = useQuery(tasksQuery);
  const tasks = useTasks();
  return (
    <section className="beam studio-block" aria-label="To do">
      <h2 className="h3">To do{tasks.length > 0 && ` (${tasks.length})`}</h2>
      {error && <ErrorStrip error={error} onRetry={() => void refetch()} />}
      {!data && !error && <SkeletonRows count={3} />}
      {data && tasks.length === 0 && (
        <p className="row soft overview-done">
          <CheckIcon className="good" /> Nothing waits for you.
        </p>
      )}
      <ul className="overview-tasks">
        {tasks.map(({ key, icon, text, note, action }) => (
          <li key={key}>
            {icon}
            <span className="grow">{text}</span>
            {note && <span className="sm soft">{note}</span>}
            {action}
          </li>
        ))}
      </ul>
    </section>
  );
}

function useTasks(): Task[] {
  const { data } = useQuery(tasksQuery);
  const { data: balances } = useQuery(balancesQuery);
  const now = useNow();
  if (!data) return [];
  const { refunds, unanswered, refused, failing } = data;
  const hasEarned = balances?.data.some(({ available, pending }) => available > 0 || pending > 0) ?? false;
  return [
    ...refunds.data.map((refund) => ({
      key: refund.id,
      icon: <UndoIcon className="warning" />,
      text: (
        <>
          Refund of <b>{formatMoney(refund.amount, refund.currency)}</b> for{" "}
          <span dir="auto">{refund.product.title}</span> to decide
        </>
      ),
      ...(refund.decideBy && { note: timeLeft(refund.decideBy, now) ?? "overdue" }),
      action: (
        <Link to="/studio/refunds/$refundId" params={{ refundId: refund.id }} className="btn s">
          Decide
        </Link>
      ),
    })),
    ...moreRefunds(refunds.total - refunds.data.length),
    ...accountTask(data.account, hasEarned),
    ...refused.map((product) => ({
      key: product.id,
      icon: <AlertIcon className="bad" />,
      text: (
        <>
          <b dir="auto">{product.title}</b> was {product.status}
          {product.moderation?.reason && (
            <>
              : <span dir="auto">{product.moderation.reason}</span>
            </>
          )}
        </>
      ),
      action: (
        <Link to={editorPath(product)} className="btn s">
          Fix
        </Link>
      ),
    })),
    ...reviewTask(unanswered),
    ...failing.map(({ product, failed30Days, last30Days }) => ({
      key: `runs ${product.id}`,
      icon: <PlayIcon className="bad" />,
      text: (
        <>
          <span dir="auto">{product.title}</span>: <b>{formatCount(failed30Days)}</b> of{" "}
          {formatCount(last30Days)} runs failed in 30 days
        </>
      ),
      action: (
        <Link to="/studio/runs" search={{ sort: "failures" }} className="btn s">
          See why
        </Link>
      ),
    })),
  ];
}

const moreRefunds = (more: number): Task[] =>
  more <= 0
    ? []
    : [
        {
          key: "more refunds",
          icon: <UndoIcon className="warning" />,
          text: `${formatCount(more)} more ${more === 1 ? "refund waits" : "refunds wait"} for you`,
          action: (
            <Link to="/studio/refunds" search={{ status: "pending" }} className="btn s">
              Show all
            </Link>
          ),
        },
      ];

function accountTask(
  { account, payoutsEnabled }: { account: string | null; payoutsEnabled: boolean | null },
  hasEarned: boolean,
): Task[] {
  const isMissing = account === null && hasEarned;
  const isIncomplete = account !== null && payoutsEnabled === false;
  if (!isMissing && !isIncomplete) return [];
  return [
    {
      key: "payout account",
      icon: <WalletIcon className="bad" />,
      text: isMissing
        ? "You have earned money, and no payout account"
        : "Your payout account is incomplete or expired: payouts are refused",
      action: (
        <Link to="/studio/payouts" className="btn s">
          {isMissing ? "Set it up" : "Complete it"}
        </Link>
      ),
    },
  ];
}

const reviewTask = (count: number): Task[] =>
  count === 0
    ? []
    : [
        {
          key: "reviews",
          icon: <ReviewIcon className="accent" />,
          text: `${formatCount(count)} ${count === 1 ? "review has" : "reviews have"} no reply`,
          action: (
            <Link to="/studio/reviews" search={{ status: "unanswered" }} className="btn s">
              Reply
            </Link>
          ),
        },
      ];
