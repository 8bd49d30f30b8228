import type { TestCaseInput } from "@stoa/sdk";
import { lazy, useState } from "react";
import { DownloadIcon, UploadIcon } from "../icons.tsx";
import { Part } from "../part.tsx";

const ImportDialog = lazy(() => import("./import-tests-dialog.tsx"));
const ExportDialog = lazy(() => import("./export-tests-dialog.tsx"));

interface TestFileButtonsProps {
  productId: string;
  cases: TestCaseInput[];
}

/** The tests from a file of another tool, and as one. */
export function TestFileButtons({ productId, cases }: TestFileButtonsProps) {
  const [dialog, setDialog] = useState<"import" | "export" | null>(null);
  const close = () => setDialog(null);
  return (
    <>
      <button type="button" className="btn s" onClick={() => setDialog("import")}>
        <UploadIcon /> Import
      </button>
      {cases.length > 0 && (
        <button type="button" className="btn s" onClick={() => setDialog("export")}>
          <DownloadIcon /> Export
        </button>
      )}
      {dialog && (
        <Part>
          {dialog === "import" ? (
            <ImportDialog productId={productId} cases={cases} onClose={close} />
          ) : (
            <ExportDialog productId={productId} onClose={close} />
          )}
        </Part>
      )}
    </>
  );
}
