import type { ImportResult, RawContent } from "@stoa/sdk";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type DragEvent, useEffect, useState } from "react";
import { stoa } from "../../api.ts";
import { CheckRow } from "../../components/check-row.tsx";
import { Dialog, DialogButtons } from "../../components/dialog.tsx";
import { CheckIcon, UploadIcon } from "../../components/icons.tsx";
import { ErrorStrip } from "../../components/page-error.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { formatBytes, formatCount } from "../../lib/format.ts";
import { type ImportFault, readFaults } from "../../lib/import-faults.ts";
import { showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";

interface ImportDialogProps {
  /** What was dropped on the page; null: it is chosen here. */
  file: File | null;
  onClose: () => void;
}

/** Checks a file first and shows each fault with its line; nothing is written before that. */
export default function ImportDialog({ file: dropped, onClose }: ImportDialogProps) {
  const [file, setFile] = useState(dropped);
  const [publish, setPublish] = useState(false);
  const client = useQueryClient();
  // No action: a file that is chosen while another one is checked takes its place.
  const {
    mutate: check,
    reset,
    ...checked
  } = useMutation({
    mutationFn: async (chosen: File) => await stoa.products.import(await contentOf(chosen), { dryRun: true }),
  });
  const write = useAction({
    run: async (input: { file: File; publish: boolean }, idempotencyKey) =>
      await stoa.products.import(await contentOf(input.file), { publish: input.publish }, { idempotencyKey }),
    onSuccess: async ({ created, updated, published }) => {
      await client.invalidateQueries({ queryKey: ["studio"] });
      showToast(
        `${formatCount(created)} products created, ${formatCount(updated)} changed, ${formatCount(published)} published.`,
      );
    },
  });
  useEffect(() => {
    if (file) check(file);
  }, [file, check]);
  const choose = (chosen: File | undefined) => {
    // What is being written cannot be replaced.
    if (!chosen || write.isPending) return;
    reset();
    write.reset();
    setFile(chosen);
  };
  const error = write.error ?? checked.error;
  const faults = error ? readFaults(error) : null;
  const isRight = checked.data !== undefined && !error;
  const notPublished = write.data?.products.filter((one) => one.notPublished) ?? [];
  return (
    <Dialog title="Import products" onClose={onClose}>
      <div className="stack">
        <DropZone file={file} onFile={choose} />
        {checked.isPending && <p className="soft">Checking the file…</p>}
        {write.isPending && <p className="soft">Importing the file…</p>}
        {error && faults === null && <ErrorStrip error={error} />}
        {faults && <FaultTable faults={faults.faults} total={faults.total} />}
        {isRight && !write.data && <Plan result={checked.data} publish={publish} onPublish={setPublish} />}
        {notPublished.length > 0 && <NotPublished products={notPublished} />}
        {write.data && notPublished.length === 0 && (
          <p className="row good">
            <CheckIcon /> All products of the file are in your list.
          </p>
        )}
        <DialogButtons>
          <ShowAsCode
            curl={`curl -X POST "${location.origin}/v1/products/import?dryRun=true" \\\n  -H "Authorization: Bearer $STOA_API_KEY" \\\n  -H "Content-Type: application/jsonl" \\\n  --data-binary @products.jsonl`}
            sdk={
              'await stoa.products.import({ content: await readFile("products.jsonl"), type: "application/jsonl" }, { dryRun: true });'
            }
          />
          <button type="button" className="btn" onClick={onClose}>
            {write.data ? "Close" : "Discard"}
          </button>
          {!write.data && (
            <button
              type="button"
              className="btn primary"
              disabled={!isRight || !file || write.isPending || changesOf(checked.data) === 0}
              onClick={() => file && write.start({ file, publish })}
            >
              {isRight ? `Import ${formatCount(changesOf(checked.data))} products` : "Import"}
            </button>
          )}
        </DialogButtons>
      </div>
    </Dialog>
  );
}

const changesOf = ({ created, updated }: ImportResult): number => created + updated;

const TYPES: Record<string, string> = {
  md: "text/markdown",
  zip: "application/zip",
  jsonl: "application/jsonl",
};

/** Browsers do not know all of these types. */
async function contentOf(file: File): Promise<RawContent> {
  const ending = file.name.toLowerCase().split(".").at(-1) ?? "";
  return { content: await file.arrayBuffer(), type: TYPES[ending] ?? "application/jsonl" };
}

function DropZone({ file, onFile }: { file: File | null; onFile: (file: File | undefined) => void }) {
  const [isOver, setOver] = useState(false);
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    onFile(event.dataTransfer.files[0]);
  };
  return (
    <label
      className={isOver ? "import-drop over" : "import-drop"}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <UploadIcon size={20} />
      <span>
        {file ? (
          <>
            <b dir="auto">{file.name}</b> <span className="soft">{formatBytes(file.size)}</span>
          </>
        ) : (
          <>
            <b>Drop a file here, or choose one.</b>{" "}
            <span className="soft">Markdown, JSON Lines, or a zip of them, at most 20 MB.</span>
          </>
        )}
      </span>
      <input
        type="file"
        className="hidden"
        accept=".md,.jsonl,.ndjson,.zip"
        onChange={({ target }) => {
          onFile(target.files?.[0]);
          // The same file may be chosen again after it was corrected.
          target.value = "";
        }}
      />
    </label>
  );
}

interface PlanProps {
  result: ImportResult;
  publish: boolean;
  onPublish: (publish: boolean) => void;
}

const Plan = ({ result: { created, updated, unchanged }, publish, onPublish }: PlanProps) => (
  <>
    <p className="row good">
      <CheckIcon /> The file is right.
    </p>
    <p>
      <b className="num">{formatCount(created)}</b> new, <b className="num">{formatCount(updated)}</b>{" "}
      changed, <b className="num">{formatCount(unchanged)}</b> unchanged. Nothing is written yet.
    </p>
    <CheckRow isChecked={publish} onChange={onPublish}>
      Publish them, except those whose line says otherwise
    </CheckRow>
  </>
);

interface FaultTableProps {
  faults: ImportFault[];
  total: number;
}

const FaultTable = ({ faults, total }: FaultTableProps) => (
  <div role="alert">
    <p className="m">
      {formatCount(total)} {total === 1 ? "fault" : "faults"}. Nothing was written: correct the file and
      choose it again.
    </p>
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard */}
    <div className="import-faults" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th>Line</th>
            <th>Field</th>
            <th>Problem and fix</th>
          </tr>
        </thead>
        <tbody>
          {faults.map((fault) => (
            <tr key={`${fault.place} ${fault.field} ${fault.problem}`}>
              <td className="nowrap num">{fault.place}</td>
              <td>
                <code>{fault.field}</code>
              </td>
              <td>
                {fault.problem}
                {fault.fix && <span className="soft"> {fault.fix}</span>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
    {total > faults.length && <p className="sm soft">And {formatCount(total - faults.length)} more.</p>}
  </div>
);

const NotPublished = ({ products }: { products: ImportResult["products"] }) => (
  <div className="strip warning" role="alert">
    <span className="grow">
      <b>{formatCount(products.length)} were imported, and not published:</b>
      <ul className="bullets">
        {products.map(({ line, file, title, notPublished }) => (
          <li key={`${file} ${line}`}>
            <span dir="auto">{title}</span>:{" "}
            {notPublished?.map(({ field, reason }) => `${field} ${reason}`).join("; ")}
          </li>
        ))}
      </ul>
    </span>
  </div>
);
