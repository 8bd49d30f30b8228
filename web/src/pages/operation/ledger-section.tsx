import type { LedgerVerification } from "@stoa/sdk";
import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { stoa } from "../../api.ts";
import { ErrorStrip } from "../../components/page-error.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { Time } from "../../components/time.tsx";
import { formatCount } from "../../lib/format.ts";
import { useAction } from "../../lib/use-action.ts";
import { verificationQuery } from "../../queries/operation.ts";
import { TaskProgress } from "./task-progress.tsx";

/** Verifies the ledger by a click and shows the report. */
export function LedgerSection() {
  const queryClient = useQueryClient();
  const { data: newest } = useSuspenseQuery(verificationQuery);
  const start = useAction({
    run: (_: undefined, idempotencyKey) => stoa.admin.ledgerVerifications.create({ idempotencyKey }),
    onSuccess: (started) => queryClient.setQueryData(verificationQuery.queryKey, started),
  });
  const isRunning = newest?.status === "running";
  return (
    <section className="beam thin stack">
      <div className="row between wrap">
        <h2 className="h3">Ledger</h2>
        <button
          type="button"
          className="btn s"
          disabled={isRunning || start.isPending}
          onClick={() => start.start(undefined)}
        >
          Verify the ledger
        </button>
      </div>
      {start.error && <ErrorStrip error={start.error} onRetry={() => start.start(undefined)} />}
      {newest ? (
        <Report verification={newest} />
      ) : (
        <p className="soft">
          Compares the ledger with every order, refund, dispute, payout and receipt, and with analytics. A
          worker does it each night.
        </p>
      )}
    </section>
  );
}

function Report({
  verification: { status, progress, error, result, endedAt },
}: {
  verification: LedgerVerification;
}) {
  if (status === "running") return <TaskProgress {...progress} />;
  if (!result || !endedAt)
    return (
      <p>
        <StatusTag tone="bad">Not verified</StatusTag> {error}
      </p>
    );
  const { ok, problemCount, problems, transactions, entries } = result;
  return (
    <>
      <p className="row wrap">
        <StatusTag tone={ok ? "good" : "bad"}>
          {ok ? "No problems" : `${formatCount(problemCount)} problems`}
        </StatusTag>
        <span className="soft sm">
          {formatCount(entries)} entries in {formatCount(transactions)}{" "}
          {transactions === 1 ? "transaction" : "transactions"}, <Time iso={endedAt} />
        </span>
      </p>
      {problems.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a list that scrolls must be reached by the keyboard
        <ol className="operation-problems sm" tabIndex={0}>
          {problems.map((problem) => (
            <li key={problem}>{problem}</li>
          ))}
        </ol>
      )}
      {problemCount > problems.length && (
        <p className="soft sm">
          The first {formatCount(problems.length)} are listed. <code>stoa-server ledger verify</code> prints
          all of them.
        </p>
      )}
    </>
  );
}
