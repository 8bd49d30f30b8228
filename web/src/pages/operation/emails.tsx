import "./operation.css";
import type { QueuedEmail } from "@stoa/sdk";
import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { stoa } from "../../api.ts";
import { EmptyState } from "../../components/empty-state.tsx";
import { FilterSelect } from "../../components/filters.tsx";
import { SendIcon } from "../../components/icons.tsx";
import { Pager } from "../../components/pager.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { StatusTag, type Tone } from "../../components/status-tag.tsx";
import { Time } from "../../components/time.tsx";
import { curlOf } from "../../lib/curl.ts";
import { formatCount } from "../../lib/format.ts";
import { showError, showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { useTitle } from "../../lib/use-title.ts";
import { EMAIL_STATUSES, type EmailsSearch, emailsQuery } from "../../queries/operation.ts";

const route = getRouteApi("/admin-shell/admin/emails");
const CODE = {
  curl: curlOf("GET", "/admin/emails?status=failed"),
  sdk: 'const emails = await stoa.admin.emails.list({ status: "failed" }).toArray();',
};
const WORDS: Record<string, string> = EMAIL_STATUSES;
const TONES: Record<string, Tone> = { waiting: "neutral", failed: "bad", refused: "warning" };

export default function Emails() {
  useTitle("Emails");
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const queryClient = useQueryClient();
  const { data: page } = useSuspenseQuery(emailsQuery(search));
  const retry = useAction({
    run: ({ emailId }: { emailId?: string }, idempotencyKey) =>
      emailId === undefined
        ? stoa.admin.emails.retryAll({ idempotencyKey })
        : stoa.admin.emails.retry(emailId, { idempotencyKey }),
    onSuccess: ({ retried }) =>
      showToast(retried === 1 ? "1 email is sent again" : `${formatCount(retried)} emails are sent again`),
    onError: (error) => showError("Nothing was sent again", error),
    onSettled: () => queryClient.invalidateQueries({ queryKey: ["operation", "emails"] }),
  });
  const canRetry = page.data.some(({ status }) => status !== "refused");
  return (
    <main className="work" id="content">
      <div className="row between wrap">
        <h1 className="page-title">Emails</h1>
        <ShowAsCode {...CODE} />
      </div>
      <p className="soft">
        Emails that were not sent in the last week. The service tries for six to eight hours, then gives up.
      </p>
      <div className="row between wrap operation-filters">
        <FilterSelect
          label="Status"
          none="Any status"
          value={search.status}
          options={Object.entries(EMAIL_STATUSES)}
          onChange={(value) =>
            void navigate({ search: value ? { status: value as EmailsSearch["status"] & {} } : {} })
          }
        />
        {canRetry && (
          <button type="button" className="btn" disabled={retry.isPending} onClick={() => retry.start({})}>
            <SendIcon /> Send all again
          </button>
        )}
      </div>
      {page.data.length === 0 ? (
        <div className="beam">
          <EmptyState title="No emails wait">
            Each email{search.status && " with this status"} was sent.
          </EmptyState>
        </div>
      ) : (
        <EmailTable
          emails={page.data}
          isBusy={retry.isPending}
          onRetry={(emailId) => retry.start({ emailId })}
        />
      )}
      <Pager page={search.page} hasMore={page.hasMore} />
    </main>
  );
}

interface EmailTableProps {
  emails: QueuedEmail[];
  isBusy: boolean;
  onRetry: (emailId: string) => void;
}

const EmailTable = ({ emails, isBusy, onRetry }: EmailTableProps) => (
  <table className="operation-table beam">
    <thead>
      <tr>
        <th>Recipient</th>
        <th>Status</th>
        <th>Subject and last error</th>
        <th className="r">Attempts</th>
        <th>Created</th>
        <th>
          <span className="hidden">Actions</span>
        </th>
      </tr>
    </thead>
    <tbody>
      {emails.map(({ id, recipient, subject, status, attempts, error, createdAt }) => (
        <tr key={id}>
          <td dir="auto">{recipient}</td>
          <td>
            <StatusTag tone={TONES[status] ?? "neutral"}>{WORDS[status] ?? status}</StatusTag>
          </td>
          <td className="wide">
            <span dir="auto">{subject ?? <span className="soft">content deleted</span>}</span>
            {error && <span className="sm soft operation-error">{error}</span>}
          </td>
          <td className="r desk-cell">{formatCount(attempts)}</td>
          <td className="soft sm fit">
            <Time iso={createdAt} />
          </td>
          <td className="act">
            {status !== "refused" && (
              <button type="button" className="btn s" disabled={isBusy} onClick={() => onRetry(id)}>
                Send again<span className="hidden"> to {recipient}</span>
              </button>
            )}
          </td>
        </tr>
      ))}
    </tbody>
  </table>
);
