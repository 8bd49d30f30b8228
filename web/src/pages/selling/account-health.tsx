import type { PayoutAccount } from "@stoa/sdk";
import { StatusTag, type Tone } from "../../components/status-tag.tsx";
import { Time } from "../../components/time.tsx";
import { disabledReason, requirementLabel } from "../../lib/payout-requirements.ts";

type Requirement = PayoutAccount["requirements"][number];

/** What only the seller can complete. */
export const isDue = ({ status }: Requirement): boolean => status !== "in_review";

export function AccountHealth(health: PayoutAccount) {
  const { account, payoutsEnabled, requirements, dueBy } = health;
  if (account === null)
    return (
      <span className="grow">
        <b>No account yet.</b>{" "}
        <span className="soft">
          The payment provider asks for your identity and your bank account. Until then nothing can be paid
          out.
        </span>
      </span>
    );
  return (
    <span className="grow row wrap">
      <code>{account}</code>
      {payoutsEnabled === true && <StatusTag tone="good">Payouts arrive</StatusTag>}
      {payoutsEnabled === true && dueBy !== null && (
        <span className="soft">
          until <Time iso={dueBy} />, unless you complete what is due.
        </span>
      )}
      {payoutsEnabled === false && (
        <>
          <StatusTag tone="bad">Payouts are refused</StatusTag>
          <span className="soft">{disabledReason(health, requirements.some(isDue))}</span>
        </>
      )}
      {payoutsEnabled === null && (
        <>
          <StatusTag tone="warning">Not known</StatusTag>
          <span className="soft">The payment provider does not answer, or does not know the account.</span>
        </>
      )}
    </span>
  );
}

const STATUSES: Record<string, [Tone, string]> = {
  past_due: ["bad", "Overdue"],
  due: ["warning", "Due"],
  in_review: ["neutral", "In review"],
};

/** What the payment provider needs before it pays out. */
export function AccountRequirements({ requirements }: PayoutAccount) {
  if (requirements.length === 0) return null;
  return (
    <ul className="payouts-requirements" aria-label="What the payment provider needs">
      {requirements.map(({ name, status, problem }) => {
        const [tone, label] = STATUSES[status] ?? ["neutral", status];
        return (
          <li key={`${status} ${name}`} className="row wrap sm">
            <StatusTag tone={tone}>{label}</StatusTag>
            <span>{requirementLabel(name)}</span>
            {problem && <span className="soft">{problem}</span>}
          </li>
        );
      })}
    </ul>
  );
}
