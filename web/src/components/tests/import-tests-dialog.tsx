import { MAX_FILE_CHARACTERS } from "@stoa/evaluation/limits";
import type { TestCaseInput, TestSetImportResult } from "@stoa/sdk";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { curlOf } from "../../lib/curl.ts";
import { formatCount } from "../../lib/format.ts";
import { formatOfName, refusedParts, TEST_FORMATS, type TestFormat } from "../../lib/test-files.ts";
import { showError, showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { testSetQuery } from "../../queries/evaluations.ts";
import { Dialog, DialogButtons } from "../dialog.tsx";
import { DropZone } from "../drop-zone.tsx";
import { Field } from "../field.tsx";
import { FormError } from "../form-error.tsx";
import { AlertIcon, CheckIcon } from "../icons.tsx";
import { ShowAsCode } from "../show-as-code.tsx";
import { RefusedParts } from "./test-file-parts.tsx";

interface TestFile {
  format: TestFormat;
  content: string;
}

interface ImportTestsDialogProps {
  productId: string;
  /** What the import replaces. */
  cases: TestCaseInput[];
  onClose: () => void;
}

/** Checks a file first, and shows what would be imported and every part that would not. */
export default function ImportTestsDialog({ productId, cases, onClose }: ImportTestsDialogProps) {
  const [file, setFile] = useState<TestFile>({ format: "promptfoo-yaml", content: "" });
  const [name, setName] = useState<string | null>(null);
  // No action: what is chosen while another text is checked takes its place.
  const { mutate: check, ...checked } = useMutation({
    mutationFn: async (chosen: TestFile) =>
      await stoa.products.testSet.import(productId, { ...chosen, dryRun: true }),
  });
  const write = useImport(productId, cases, onClose);
  const isTooLong = file.content.length > MAX_FILE_CHARACTERS;
  const change = (part: Partial<TestFile>) => {
    // What was checked is no longer what is here.
    checked.reset();
    write.reset();
    setFile({ ...file, ...part });
  };
  const choose = async ([chosen]: File[]) => {
    if (!chosen || write.isPending) return;
    const next = { format: formatOfName(chosen.name) ?? file.format, content: await chosen.text() };
    change(next);
    setName(chosen.name);
    if (next.content.length <= MAX_FILE_CHARACTERS) check(next);
  };
  const error = write.error ?? checked.error;
  const refused = refusedParts(error);
  const isEmpty = file.content.trim() === "";
  return (
    <Dialog title="Import tests" onClose={onClose}>
      <div className="stack form test-file">
        <DropZone
          label="File with tests"
          hint="YAML, CSV or JSON, at most 1 MB."
          accept=".yaml,.yml,.csv,.json"
          onFiles={(files) => void choose(files)}
        />
        <Field label="Format">
          {(control) => (
            <select
              {...control}
              className="input"
              value={file.format}
              onChange={({ target }) => change({ format: target.value as TestFormat })}
            >
              {TEST_FORMATS.map((format) => (
                <option key={format.id} value={format.id}>
                  {format.name}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field
          label={name === null ? "Or its text" : `Text of ${name}`}
          error={isTooLong ? `Use at most ${formatCount(MAX_FILE_CHARACTERS)} characters.` : undefined}
        >
          {(control) => (
            <textarea
              {...control}
              className="input mono"
              rows={6}
              spellCheck={false}
              data-own-undo
              value={file.content}
              onChange={({ target }) => change({ content: target.value })}
            />
          )}
        </Field>
        {refused === null && <FormError error={error} title="The file was not read" />}
        {refused && <RefusedParts title="Nothing of this file can be imported." parts={refused} />}
        {checked.data && !error && <Plan result={checked.data} replaced={cases.length} />}
        <DialogButtons>
          <ShowAsCode
            curl={curlOf("POST", `/products/${productId}/test-set/import`, {
              format: file.format,
              content: "…",
              dryRun: true,
            })}
            sdk={`await stoa.products.testSet.import("${productId}", { format: "${file.format}", content, dryRun: true });`}
          />
          <button type="button" className="btn" onClick={onClose}>
            Cancel
          </button>
          {checked.data ? (
            <button
              type="button"
              className="btn primary"
              disabled={write.isPending}
              onClick={() => write.start(file)}
            >
              Import {countTests(checked.data.imported)}
            </button>
          ) : (
            <button
              type="button"
              className="btn primary"
              disabled={isEmpty || isTooLong || checked.isPending}
              onClick={() => check(file)}
            >
              {checked.isPending ? "Checking" : "Check the file"}
            </button>
          )}
        </DialogButtons>
      </div>
    </Dialog>
  );
}

const countTests = (count: number): string => `${formatCount(count)} ${count === 1 ? "test" : "tests"}`;

/** Replaces the tests. The tests before can be taken back. */
function useImport(productId: string, cases: TestCaseInput[], onDone: () => void) {
  const client = useQueryClient();
  const { queryKey } = testSetQuery(productId);
  const takeBack = async () => {
    try {
      client.setQueryData(queryKey, await stoa.products.testSet.replace(productId, { cases }));
    } catch (error) {
      showError("The tests of before were not stored again", error);
    }
  };
  return useAction({
    run: async (file: TestFile, idempotencyKey) =>
      await stoa.products.testSet.import(productId, file, { idempotencyKey }),
    onSuccess: async ({ imported }) => {
      await client.invalidateQueries({ queryKey });
      showToast(`${countTests(imported)} imported`, { undo: () => void takeBack() });
      onDone();
    },
  });
}

const Plan = ({
  result: { imported, problems },
  replaced,
}: {
  result: TestSetImportResult;
  replaced: number;
}) => (
  <>
    <p className="row good" role="status">
      <CheckIcon /> {countTests(imported)} can be imported. Nothing is stored yet.
    </p>
    {replaced > 0 && (
      <p className="strip warning">
        <AlertIcon size={20} />
        <span className="grow">
          <b>The import replaces your {countTests(replaced)}.</b> Export them first to keep a copy.
        </span>
      </p>
    )}
    {problems.length > 0 && (
      <RefusedParts
        title={`${formatCount(problems.length)} ${problems.length === 1 ? "part" : "parts"} of the file will be left out:`}
        parts={problems}
      />
    )}
  </>
);
