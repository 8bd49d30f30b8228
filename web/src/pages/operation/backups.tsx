import "./operation.css";
import type { Backup } from "@stoa/sdk";
import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { FormError } from "../../components/form-error.tsx";
import { ArchiveIcon, DownloadIcon, TrashIcon, WarningIcon } from "../../components/icons.tsx";
import { Pager } from "../../components/pager.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { Time } from "../../components/time.tsx";
import { curlOf } from "../../lib/curl.ts";
import { formatBytes, formatCount } from "../../lib/format.ts";
import { showError, showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { useTitle } from "../../lib/use-title.ts";
import { backupsQuery } from "../../queries/operation.ts";
import { TaskProgress } from "./task-progress.tsx";

const route = getRouteApi("/admin-shell/admin/backups");
const CODE = {
  curl: curlOf("POST", "/admin/backups"),
  sdk: "const backup = await stoa.admin.backups.create();",
};

export default function Backups() {
  useTitle("Backups");
  const search = route.useSearch();
  const queryClient = useQueryClient();
  const { data: page } = useSuspenseQuery(backupsQuery(search));
  const onSettled = () => queryClient.invalidateQueries({ queryKey: ["operation", "backups"] });
  const start = useAction({
    run: (_: undefined, idempotencyKey) => stoa.admin.backups.create({ idempotencyKey }),
    onSettled,
  });
  const download = useAction({
    run: (id: string) => stoa.admin.backups.createDownloadLink(id),
    // The browser streams the file to its disk.
    onSuccess: ({ url }) => location.assign(url),
  });
  const running = page.data.find(({ status }) => status === "running");
  return (
    <main className="work" id="content">
      <div className="row between wrap">
        <h1 className="page-title">Backups</h1>
        <div className="row wrap">
          <ShowAsCode {...CODE} />
          <button
            type="button"
            className="btn primary"
            disabled={running !== undefined || start.isPending}
            onClick={() => start.start(undefined)}
          >
            <ArchiveIcon /> Back up now
          </button>
        </div>
      </div>
      <p className="soft">
        One file with all data and files of the marketplace, written while it runs. Download it: a backup on
        the same disk is lost with it. Restore it on the page of the first administrator of a new
        installation, or with <code>stoa-server restore</code>.
      </p>
      <FormError error={start.error} title="The backup was not started" />
      <FormError error={download.error} title="The backup was not downloaded" />
      {running && <TaskProgress {...running.progress} />}
      {page.data.length === 0 ? (
        <div className="beam">
          <EmptyState title="No backups yet" curl={CODE.curl}>
            Those that you start here are listed. Backups of the command line are not.
          </EmptyState>
        </div>
      ) : (
        <BackupTable backups={page.data} onDownload={download.start} onDeleted={onSettled} />
      )}
      <Pager page={search.page} hasMore={page.hasMore} />
    </main>
  );
}

interface BackupTableProps {
  backups: Backup[];
  onDownload: (id: string) => void;
  onDeleted: () => void;
}

function BackupTable({ backups, onDownload, onDeleted }: BackupTableProps) {
  const [toDelete, setToDelete] = useState<Backup | null>(null);
  const remove = useAction({
    run: ({ id }: Backup) => stoa.admin.backups.delete(id),
    onSuccess: () => showToast("The backup was deleted"),
    onError: (error) => showError("The backup was not deleted", error),
    onSettled: () => {
      setToDelete(null);
      onDeleted();
    },
  });
  return (
    <>
      <table className="operation-table beam">
        <thead>
          <tr>
            <th>Started</th>
            <th>State</th>
            <th>Contents</th>
            <th className="r">Size</th>
            <th>
              <span className="hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {backups.map((backup) => (
            <BackupRow key={backup.id} backup={backup} onDownload={onDownload} onDelete={setToDelete} />
          ))}
        </tbody>
      </table>
      {toDelete && (
        <ConfirmDialog
          title="Delete this backup?"
          action="Delete the backup"
          keep="Keep it"
          isPending={remove.isPending}
          onConfirm={() => remove.start(toDelete)}
          onClose={() => setToDelete(null)}
        >
          <p>
            {toDelete.fileName}
            {toDelete.size !== null && `, ${formatBytes(toDelete.size)}`} is removed from the data folder. A
            downloaded copy stays.
          </p>
        </ConfirmDialog>
      )}
    </>
  );
}

interface BackupRowProps {
  backup: Backup;
  onDownload: (id: string) => void;
  onDelete: (backup: Backup) => void;
}

const BackupRow = ({ backup, onDownload, onDelete }: BackupRowProps) => (
  <tr>
    <td>
      <Time iso={backup.startedAt} className="m" />
      <span className="sm soft mono operation-error desk-cell">{backup.fileName}</span>
    </td>
    <td>
      <BackupState backup={backup} />
    </td>
    <td className="wide sm">
      <Contents backup={backup} />
    </td>
    <td className="r num">{backup.size === null ? "" : formatBytes(backup.size)}</td>
    <td className="act">
      {backup.status !== "running" && (
        <span className="row end-row">
          {backup.isAvailable && (
            <button type="button" className="btn s" onClick={() => onDownload(backup.id)}>
              <DownloadIcon /> Download
            </button>
          )}
          <button
            type="button"
            className="iconb"
            aria-label={`Delete ${backup.fileName}`}
            onClick={() => onDelete(backup)}
          >
            <TrashIcon />
          </button>
        </span>
      )}
    </td>
  </tr>
);

function BackupState({ backup: { status, isAvailable, result } }: { backup: Backup }) {
  if (status === "running") return <StatusTag tone="accent">Running</StatusTag>;
  if (status === "failed") return <StatusTag tone="bad">Failed</StatusTag>;
  if (!isAvailable) return <StatusTag tone="neutral">File elsewhere</StatusTag>;
  if (result && result.problems.length > 0)
    return (
      <StatusTag tone="warning" icon={<WarningIcon />}>
        Incomplete
      </StatusTag>
    );
  return <StatusTag tone="good">Complete</StatusTag>;
}

function Contents({ backup: { error, result } }: { backup: Backup }) {
  if (error) return <span className="bad">{error}</span>;
  if (!result) return null;
  return (
    <>
      <span className="soft">
        {formatCount(result.rows)} rows, {formatCount(result.files)} files,{" "}
        {result.keys === "wrapped"
          ? "with its keys"
          : "without keys: keep those of the installation elsewhere"}
      </span>
      {result.problems.map((problem) => (
        <span key={problem} className="bad operation-error">
          {problem}
        </span>
      ))}
    </>
  );
}
