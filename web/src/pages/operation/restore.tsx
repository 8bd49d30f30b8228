import "./operation.css";
import type { Restore } from "@stoa/sdk";
import { type FormEvent, useEffect, useState } from "react";
import { ErrorSummary, Field, fieldErrors } from "../../components/field.tsx";
import { AlertIcon } from "../../components/icons.tsx";
import { formatBytes, formatCount, formatMoment } from "../../lib/format.ts";
import { useAction } from "../../lib/use-action.ts";
import { useTitle } from "../../lib/use-title.ts";
import { followRestore, readKeptId, resumeRestore, sendBackup, startRestore } from "./send-backup.ts";
import { TaskProgress } from "./task-progress.tsx";

/** Stored by the page of the first administrator, where the link of the start leads. */
const TOKEN_KEY = "stoa.first-admin";

function readToken(): string | null {
  try {
    return String(JSON.parse(localStorage.getItem(TOKEN_KEY) ?? "").value);
  } catch {
    return null;
  }
}

interface RestoreInput {
  file: File;
  token: string;
  passphrase: string;
}

export default function RestorePage() {
  useTitle("Restore a backup");
  const [token] = useState(readToken);
  const [state, setState] = useState<Restore | null>(null);
  const restore = useAction({
    run: async (input: RestoreInput | { id: string }) => {
      setState(null);
      if ("id" in input) return resumeRestore(input.id, setState);
      const { file, token, passphrase } = input;
      const { id } = await sendBackup(file, token, setState);
      setState(await startRestore(id, passphrase));
      return followRestore(id, setState);
    },
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: once, when the page opens
  useEffect(() => {
    const id = readKeptId();
    if (id !== null) restore.start({ id });
  }, []);
  const isDone = restore.data?.status === "succeeded";
  return (
    <main className="page narrow stack" id="content">
      <h1 className="title">{isDone ? "The backup is restored" : "Restore a backup"}</h1>
      {isDone ? (
        <Restored result={restore.data?.result ?? null} />
      ) : (
        <>
          <p className="soft lead">
            This installation has no account yet. It becomes the marketplace of the backup, with its accounts,
            products, orders and files.
          </p>
          {restore.data?.error && <Refused why={restore.data.error} />}
          <ErrorSummary error={restore.error} title="The backup was not restored" />
          {restore.isPending && state && <TaskProgress {...progressOf(state)} unit="bytes" />}
          {token === null ? (
            <NoToken />
          ) : (
            <RestoreForm
              isPending={restore.isPending}
              errors={fieldErrors(restore.error)}
              onRestore={(input) => restore.start({ ...input, token })}
            />
          )}
        </>
      )}
    </main>
  );
}

const progressOf = ({ status, progress }: Restore) =>
  status === "restarting" ? { step: "Starting the service again", done: 0, total: 0 } : progress;

const NoToken = () => (
  <div className="strip warning">
    <AlertIcon size={20} />
    <span className="grow">
      Open the link that the service printed when it started. It leads to the page of the first administrator,
      and from there to here. It works for 30 minutes; a restart prints a new one.
    </span>
  </div>
);

const Refused = ({ why }: { why: string }) => (
  <div className="strip bad" role="alert">
    <AlertIcon size={20} />
    <span className="grow operation-error">
      <b>The backup was not restored.</b> {why}
    </span>
  </div>
);

const Restored = ({ result }: { result: Restore["result"] }) => (
  <>
    {result && (
      <p className="lead">
        {formatCount(result.rows)} rows in {formatCount(result.tables)} tables and {formatCount(result.files)}{" "}
        files, as of {formatMoment(result.madeAt)}.
      </p>
    )}
    <p className="soft">Sign in with an account of the backup. Sessions and API keys of then work again.</p>
    <p>
      <a className="btn primary" href="/auth/sign-in">
        Sign in
      </a>
    </p>
  </>
);

interface RestoreFormProps {
  isPending: boolean;
  errors: Record<string, string>;
  onRestore: (input: { file: File; passphrase: string }) => void;
}

function RestoreForm({ isPending, errors, onRestore }: RestoreFormProps) {
  const [file, setFile] = useState<File | null>(null);
  const [passphrase, setPassphrase] = useState("");
  const [isMissing, setIsMissing] = useState(false);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setIsMissing(file === null);
    if (file) onRestore({ file, passphrase });
  };
  return (
    <form className="stack" onSubmit={submit} noValidate>
      <Field
        label="Backup file"
        hint={file ? formatBytes(file.size) : "A .tar.gz file that a backup of Stoa wrote"}
        error={
          isMissing && file === null ? "Choose the file of a backup." : (errors["size"] ?? errors["fileName"])
        }
      >
        {(control) => (
          <input
            {...control}
            type="file"
            className="input operation-file"
            accept=".gz,application/gzip"
            disabled={isPending}
            onChange={({ target }) => setFile(target.files?.[0] ?? null)}
          />
        )}
      </Field>
      <Field
        label="Passphrase"
        hint="Only if the backup has its keys, and they differ from those of this installation"
      >
        {(control) => (
          <input
            {...control}
            type="password"
            className="input"
            autoComplete="off"
            value={passphrase}
            disabled={isPending}
            onChange={({ target }) => setPassphrase(target.value)}
          />
        )}
      </Field>
      <div>
        <button type="submit" className="btn primary" disabled={isPending}>
          {isPending ? "Restoring" : "Restore the backup"}
        </button>
      </div>
    </form>
  );
}
