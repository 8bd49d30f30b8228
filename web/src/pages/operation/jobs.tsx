import "./operation.css";
import type { Job, Queue } from "@stoa/sdk";
import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { stoa } from "../../api.ts";
import { EmptyState } from "../../components/empty-state.tsx";
import { FilterSelect } from "../../components/filters.tsx";
import { RefreshIcon } from "../../components/icons.tsx";
import { Pager } from "../../components/pager.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { StatusTag, type Tone } from "../../components/status-tag.tsx";
import { Time } from "../../components/time.tsx";
import { curlOf } from "../../lib/curl.ts";
import { formatCount } from "../../lib/format.ts";
import { showError, showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { useTitle } from "../../lib/use-title.ts";
import { JOB_STATES, type JobsSearch, jobsQuery, queuesQuery } from "../../queries/operation.ts";
import { ScheduledJobs } from "./scheduled-jobs.tsx";

const route = getRouteApi("/admin-shell/admin/jobs");
const CODE = {
  curl: curlOf("POST", "/admin/jobs/retry"),
  sdk: "const { retried } = await stoa.admin.jobs.retryAll();",
};

const describeRetried = (retried: number) =>
  retried === 1 ? "1 job waits again" : `${formatCount(retried)} jobs wait again`;

export default function Jobs() {
  useTitle("Jobs");
  const { data: queues } = useSuspenseQuery(queuesQuery);
  return (
    <main className="work" id="content">
      <div className="row between wrap">
        <h1 className="page-title">Jobs</h1>
        <ShowAsCode {...CODE} />
      </div>
      <p className="soft">What the workers do in the background. A failed job is kept for a week.</p>
      <JobList queues={queues} />
      <QueueTable queues={queues.filter(({ schedule }) => schedule === null)} />
      <ScheduledJobs queues={queues.filter(({ schedule }) => schedule !== null)} />
    </main>
  );
}

/** Retries one failed job, runs a waiting one at once, or retries all of a queue. */
function useRetry() {
  const queryClient = useQueryClient();
  return useAction({
    run: ({ jobId, queue }: { jobId?: string; queue?: string }, idempotencyKey) =>
      jobId === undefined
        ? stoa.admin.jobs.retryAll({ queue }, { idempotencyKey })
        : stoa.admin.jobs.retry(jobId, { idempotencyKey }),
    onSuccess: ({ retried }) => showToast(describeRetried(retried)),
    onError: (error) => showError("The jobs were not retried", error),
    onSettled: () => queryClient.invalidateQueries({ queryKey: ["operation"] }),
  });
}

function JobList({ queues }: { queues: Queue[] }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const { data: page } = useSuspenseQuery(jobsQuery(search));
  const retry = useRetry();
  const change = (changed: Partial<JobsSearch>) =>
    void navigate({ search: ({ page: _, ...old }) => ({ ...old, ...changed }) });
  const { queue, state } = search;
  const failed = queues
    .filter(({ name }) => queue === undefined || name === queue)
    .reduce((sum, { failed }) => sum + failed, 0);
  return (
    <>
      <div className="row between wrap operation-filters">
        <div className="row wrap">
          <FilterSelect
            label="State"
            none="Any state"
            value={state}
            options={Object.entries(JOB_STATES)}
            onChange={(value) => change({ state: value as JobsSearch["state"] })}
          />
          <FilterSelect
            label="Queue"
            none="Any queue"
            value={queue}
            options={queues.filter(({ schedule }) => schedule === null).map(({ name }) => [name, name])}
            onChange={(value) => change({ queue: value })}
          />
        </div>
        {failed > 0 && (
          <button
            type="button"
            className="btn"
            disabled={retry.isPending}
            onClick={() => retry.start(queue === undefined ? {} : { queue })}
          >
            <RefreshIcon /> Retry {formatCount(failed)} failed
          </button>
        )}
      </div>
      {page.data.length === 0 ? (
        <div className="beam">
          <EmptyState title="No jobs here">
            No job waits, runs or has failed{(state || queue) && " with these filters"}.
          </EmptyState>
        </div>
      ) : (
        <JobTable jobs={page.data} onRetry={(jobId) => retry.start({ jobId })} isBusy={retry.isPending} />
      )}
      <Pager page={search.page} hasMore={page.hasMore} />
    </>
  );
}

const WORDS: Record<string, string> = JOB_STATES;
const TONES: Record<string, Tone> = { waiting: "neutral", running: "accent", failed: "bad" };

interface JobTableProps {
  jobs: Job[];
  isBusy: boolean;
  onRetry: (jobId: string) => void;
}

const JobTable = ({ jobs, isBusy, onRetry }: JobTableProps) => (
  <table className="operation-table beam">
    <thead>
      <tr>
        <th>Queue</th>
        <th>State</th>
        <th>Error</th>
        <th className="r">Attempts</th>
        <th>Time</th>
        <th>
          <span className="hidden">Actions</span>
        </th>
      </tr>
    </thead>
    <tbody>
      {jobs.map((job) => (
        <tr key={job.id}>
          <td className="mono name">{job.queue}</td>
          <td>
            <StatusTag tone={TONES[job.state] ?? "neutral"}>{WORDS[job.state] ?? job.state}</StatusTag>
          </td>
          <td className="sm wide">{job.error ?? <span className="soft">none</span>}</td>
          <td className="r desk-cell">{formatCount(job.attempts)}</td>
          <td className="soft sm fit">
            <JobTime job={job} />
          </td>
          <td className="act">
            {job.state !== "running" && (
              <button type="button" className="btn s" disabled={isBusy} onClick={() => onRetry(job.id)}>
                {job.state === "failed" ? "Retry" : "Run now"}
                <span className="hidden"> {job.queue}</span>
              </button>
            )}
          </td>
        </tr>
      ))}
    </tbody>
  </table>
);

function JobTime({ job: { failedAt, startedAt, nextAttemptAt, createdAt } }: { job: Job }) {
  if (failedAt)
    return (
      <>
        failed <Time iso={failedAt} />
      </>
    );
  if (startedAt)
    return (
      <>
        began <Time iso={startedAt} />
      </>
    );
  if (!nextAttemptAt || Date.parse(nextAttemptAt) <= Date.now())
    return (
      <>
        due since <Time iso={nextAttemptAt ?? createdAt} />
      </>
    );
  return (
    <>
      next <Time iso={nextAttemptAt} />
    </>
  );
}

const QueueTable = ({ queues }: { queues: Queue[] }) => (
  <section className="beam thin">
    <h2 className="h3">Queues</h2>
    <table className="operation-table">
      <thead>
        <tr>
          <th>Queue</th>
          <th className="r">Waiting</th>
          <th className="r">Running</th>
          <th className="r">Failed</th>
          <th>Last success</th>
        </tr>
      </thead>
      <tbody>
        {queues.map(({ name, waiting, running, failed, lastSuccessAt }) => (
          <tr key={name}>
            <td className="mono name">{name}</td>
            <td className="r">
              {formatCount(waiting)}
              <span className="phone"> waiting{failed > 0 && `, ${formatCount(failed)} failed`}</span>
            </td>
            <td className="r desk-cell">{formatCount(running)}</td>
            <td className={failed > 0 ? "r bad m desk-cell" : "r desk-cell"}>{formatCount(failed)}</td>
            <td className="soft sm desk-cell">{lastSuccessAt ? <Time iso={lastSuccessAt} /> : "never"}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </section>
);
