import "./account.css";
import type { PlanPayment, QuotaWindow, Subscription } from "@stoa/sdk";
import { useQuery, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { AlertIcon, ClockIcon } from "../../components/icons.tsx";
import { Pager } from "../../components/pager.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { StatusTag, type Tone } from "../../components/status-tag.tsx";
import { Time } from "../../components/time.tsx";
import { cardName } from "../../lib/card-name.ts";
import { curlOf } from "../../lib/curl.ts";
import { formatCount, formatDate, formatMoment, formatMoney } from "../../lib/format.ts";
import { declineReason } from "../../lib/orders.ts";
import { showError } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { useTitle } from "../../lib/use-title.ts";
import { planPaymentsQuery, subscriptionQuery, usageQuery } from "../../queries/account.ts";
import { ChangePlan } from "./change-plan.tsx";
import { type Offer, planName, spanOf } from "./plans.ts";

const route = getRouteApi("/account/plan");
/** While the bank or the payment provider decides. */
const POLL_MS = 3_000;

export default function PlanPage() {
  useTitle("Plan");
  const { data: plan } = useSuspenseQuery({
    ...subscriptionQuery,
    refetchInterval: ({ state }) => (state.data?.payment ? POLL_MS : false),
  });
  const [chosen, setChosen] = useState<Offer | null>(null);
  return (
    <main className="work" id="content">
      <h1 className="page-title">Plan</h1>
      <p className="soft">
        You have the {planName(plan.plan)} plan
        {plan.periodEnd && `, paid until ${formatDate(plan.periodEnd)}`}. It decides how many requests your
        programs may send.
      </p>
      <Notices plan={plan} />
      <Usage />
      <section className="beam thin">
        <h2 className="h3">Plans</h2>
        <div className="offers">
          {plan.offers.map((offer) => (
            <OfferColumn key={offer.plan} offer={offer} plan={plan} onChoose={() => setChosen(offer)} />
          ))}
        </div>
      </section>
      <Payments />
      {chosen && <ChangePlan offer={chosen} plan={plan} onClose={() => setChosen(null)} />}
    </main>
  );
}

/** What waits for a decision or a payment. */
function Notices({ plan: { plan, payment, pastDue, scheduled } }: { plan: Subscription }) {
  const client = useQueryClient();
  const choose = useAction({
    run: async () => await stoa.account.subscription.update({ plan }),
    onSuccess: (data) => client.setQueryData(subscriptionQuery.queryKey, data),
    onError: (error) => showError("The plan did not change", error),
    onSettled: () => client.invalidateQueries({ queryKey: ["plan-payments"] }),
  });
  const button = (label: string) => (
    <button type="button" className="btn s" disabled={choose.isPending} onClick={() => choose.start()}>
      {label}
    </button>
  );
  return (
    <div className="stack">
      {payment && (
        <div className="strip warning" role="status">
          <ClockIcon size={20} />
          <span className="grow">
            <b>
              The payment of {formatMoney(payment.amount, payment.currency)} for the {planName(payment.plan)}{" "}
              plan {payment.status === "requires_action" ? "waits for you." : "is on its way."}
            </b>{" "}
            {payment.status === "requires_action"
              ? "Your bank asks you to confirm it."
              : "This page shows the result by itself."}
          </span>
          {payment.nextAction && (
            <a className="btn s" href={payment.nextAction.url}>
              Open the bank's page
            </a>
          )}
          {button("Cancel the change")}
        </div>
      )}
      {pastDue && (
        <div className="strip bad" role="alert">
          <AlertIcon size={20} />
          <span className="grow">
            <b>The next month could not be paid.</b> {pastDue.tries} of 3 attempts failed; the next is on{" "}
            {formatMoment(pastDue.nextTry)}. The plan stays active until then.
          </span>
          {button("Pay now")}
        </div>
      )}
      {scheduled && (
        <div className="strip" role="status">
          <ClockIcon size={20} />
          <span className="grow">
            <b>
              The {planName(scheduled.plan)} plan begins on {formatDate(scheduled.effectiveDate)}.
            </b>{" "}
            Until then nothing changes.
          </span>
          {button(`Keep ${planName(plan)}`)}
        </div>
      )}
    </div>
  );
}

function Usage() {
  const { data } = useQuery(usageQuery);
  if (!data) return null;
  return (
    <section className="beam thin">
      <div className="row between wrap">
        <h2 className="h3">Requests now</h2>
        <ShowAsCode
          curl={curlOf("GET", "/account/usage")}
          sdk="const { windows } = await stoa.account.usage.get();"
        />
      </div>
      <div className="meters">
        {data.windows.map((window) => (
          <Meter key={window.seconds} label="API keys and apps" window={window} />
        ))}
        {data.sessionWindows.map((window) => (
          <Meter key={window.seconds} label="Your browsers" window={window} />
        ))}
      </div>
    </section>
  );
}

function Meter({ label, window: { limit, seconds, used, resetAt } }: { label: string; window: QuotaWindow }) {
  const share = Math.min(1, used / limit);
  const tone = share >= 1 ? "bad" : share >= 0.8 ? "warning" : "";
  const name = `${label}, per ${spanOf(seconds)}`;
  return (
    <div className="meter">
      <div className="row">
        <span>{name}</span>
        <span className="sm soft num">
          {formatCount(used)} of {formatCount(limit)}
          {resetAt && `, begins again ${formatMoment(resetAt)}`}
        </span>
      </div>
      <meter className="hidden" aria-label={name} max={limit} value={Math.min(used, limit)} />
      <span className="bar" aria-hidden="true">
        <span className={tone} style={{ width: `${share * 100}%` }} />
      </span>
    </div>
  );
}

interface OfferColumnProps {
  offer: Offer;
  plan: Subscription;
  onChoose: () => void;
}

function OfferColumn({ offer, plan: present, onChoose }: OfferColumnProps) {
  const { plan, monthlyPrice, currency, quotas, concurrentRuns } = offer;
  const isPresent = plan === present.plan;
  return (
    <div className="beam offer">
      <div className="row">
        <h3>{planName(plan)}</h3>
        {isPresent && <span className="tag accent">Yours</span>}
      </div>
      <p className="num">
        {monthlyPrice === null ? (
          <span className="soft">By agreement</span>
        ) : (
          <>
            <span className="figure">{formatMoney(monthlyPrice, currency)}</span>{" "}
            <span className="soft sm">a month</span>
          </>
        )}
      </p>
      <ul className="sm">
        {quotas.map(({ requests, seconds }) => (
          <li key={seconds}>
            {formatCount(requests)} requests per {spanOf(seconds)}
          </li>
        ))}
        <li>{formatCount(concurrentRuns)} runs at the same time</li>
      </ul>
      <div>
        {isPresent || monthlyPrice === null ? (
          <span className="sm soft">{isPresent ? "Active" : "Ask the operator of this marketplace."}</span>
        ) : (
          <button type="button" className="btn" disabled={present.payment !== null} onClick={onChoose}>
            Change to {planName(plan)}
          </button>
        )}
      </div>
    </div>
  );
}

const TONES: Record<string, [Tone, string]> = {
  pending: ["warning", "On its way"],
  requires_action: ["warning", "Waits for you"],
  completed: ["good", "Paid"],
  failed: ["bad", "Failed"],
  canceled: ["neutral", "Canceled"],
};

function Payments() {
  const { page } = route.useSearch();
  const { data } = useSuspenseQuery(planPaymentsQuery(page));
  return (
    <section className="beam thin">
      <h2 className="h3">Payments</h2>
      {data.data.length === 0 && page === undefined ? (
        <p className="soft">No payments yet. The Free plan costs nothing.</p>
      ) : (
        <div className="scroll-x">
          <table>
            <thead>
              <tr>
                <th>Date</th>
                <th>Plan</th>
                <th>Status</th>
                <th>Paid with</th>
                <th className="r">Amount</th>
                <th>Receipt</th>
              </tr>
            </thead>
            <tbody>
              {data.data.map((payment) => (
                <PaymentRow key={payment.id} payment={payment} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      <Pager page={page} hasMore={data.hasMore} />
    </section>
  );
}

function PaymentRow({ payment }: { payment: PlanPayment }) {
  const { createdAt, plan, status, paymentMethod, amount, currency, receipt, declineCode, period } = payment;
  const [tone, word] = TONES[status] ?? ["neutral", status];
  return (
    <tr>
      <td>
        <Time iso={createdAt} isDay />
      </td>
      <td>
        {planName(plan)}
        {period && (
          <span className="sm soft">
            {" "}
            until <Time iso={period.end} isDay />
          </span>
        )}
      </td>
      <td>
        <StatusTag tone={tone}>{word}</StatusTag>{" "}
        {declineCode && <span className="sm soft">{declineReason(declineCode)}</span>}
      </td>
      <td className="soft">{paymentMethod && cardName(paymentMethod)}</td>
      <td className="r num">{formatMoney(amount, currency)}</td>
      <td>
        <span className="row">
          {receipt.url && (
            <a className="link" href={receipt.url} target="_blank" rel="noopener">
              {receipt.number ?? "Receipt"}
            </a>
          )}
          {receipt.pdf && (
            <a className="link" href={receipt.pdf} target="_blank" rel="noopener">
              PDF
            </a>
          )}
        </span>
      </td>
    </tr>
  );
}
