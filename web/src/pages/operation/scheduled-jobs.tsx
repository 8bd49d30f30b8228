import type { Queue } from "@stoa/sdk";
import { useQueryClient } from "@tanstack/react-query";
import { stoa } from "../../api.ts";
import { WarningIcon } from "../../components/icons.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { Time } from "../../components/time.tsx";
import { formatClock, formatExactTime } from "../../lib/format.ts";
import { showError, showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";

function useRun() {
  const queryClient = useQueryClient();
  return useAction({
    run: (queue: string, idempotencyKey) => stoa.admin.queues.run(queue, { idempotencyKey }),
    onSuccess: (_, queue) => showToast(`${queue} runs as soon as a worker is free`),
    onError: (error) => showError("The job was not started", error),
    onSettled: () => queryClient.invalidateQueries({ queryKey: ["operation"] }),
  });
}

/** Jobs that run on a schedule, with their last and next run. */
export function ScheduledJobs({ queues }: { queues: Queue[] }) {
  const run = useRun();
  return (
    <section className="beam thin">
      <h2 className="h3">On a schedule</h2>
      {queues.length === 0 ? (
        <p className="soft">No worker has started yet, so no schedule is known.</p>
      ) : (
        <table className="operation-table">
          <thead>
            <tr>
              <th>Job</th>
              <th>State</th>
              <th>Last success</th>
              <th>Next run</th>
              <th>
                <span className="hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {queues.map((queue) => (
              <tr key={queue.name}>
                <td className="mono name">{queue.name}</td>
                <td>
                  <ScheduledState queue={queue} />
                </td>
                <td className="soft sm">
                  {queue.lastSuccessAt ? <Time iso={queue.lastSuccessAt} /> : "never"}
                </td>
                <td className="soft sm">{queue.nextRunAt && <NextRun iso={queue.nextRunAt} />}</td>
                <td className="act wide">
                  <button
                    type="button"
                    className="btn s"
                    disabled={run.isPending || queue.waiting + queue.running > 0}
                    onClick={() => run.start(queue.name)}
                  >
                    Run now<span className="hidden"> {queue.name}</span>
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

const NextRun = ({ iso }: { iso: string }) => (
  <time dateTime={iso} title={formatExactTime(iso)}>
    {formatClock(iso)}
  </time>
);

function ScheduledState({ queue }: { queue: Queue }) {
  const { lastFailureAt, lastSuccessAt, lastError, isLate, running, waiting } = queue;
  if (running > 0) return <StatusTag tone="accent">Runs</StatusTag>;
  if (waiting > 0) return <StatusTag tone="neutral">Waiting</StatusTag>;
  if (lastFailureAt && (!lastSuccessAt || lastFailureAt > lastSuccessAt))
    return (
      <>
        <StatusTag tone="bad">Failed</StatusTag>
        {lastError && <span className="sm operation-error">{lastError}</span>}
      </>
    );
  if (isLate)
    return (
      <StatusTag tone="warning" icon={<WarningIcon />}>
        Late
      </StatusTag>
    );
  return <StatusTag tone="good">{lastSuccessAt ? "Succeeded" : "Waits"}</StatusTag>;
}
