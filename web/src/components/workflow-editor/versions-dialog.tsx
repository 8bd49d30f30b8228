import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { versionsQuery } from "../../queries/market.ts";
import { versionQuery } from "../../queries/running.ts";
import { Dialog, DialogButtons } from "../dialog.tsx";
import { SkeletonRows } from "../skeleton.tsx";
import { useEditor } from "./editor-context.ts";
import { WorkflowDiffView } from "./workflow-diff.tsx";

const DRAFT = "";

/** Two versions side by side, or one with what the editor shows. */
export default function VersionsDialog({ onClose }: { onClose: () => void }) {
  const { product, document, execute } = useEditor();
  const { data: versions } = useQuery(versionsQuery(product.id));
  const [before, setBefore] = useState(product.version);
  const [after, setAfter] = useState(DRAFT);
  const [old, fresh] = [useText(before), useText(after)];
  const options = versions?.data.map(({ version }) => version) ?? [product.version];
  return (
    <Dialog title="Compare versions" onClose={onClose}>
      <div className="row wrap">
        <label className="row">
          <span className="m">From</span>
          <select className="input" value={before} onChange={({ target }) => setBefore(target.value)}>
            {options.map((version) => (
              <option key={version}>{version}</option>
            ))}
          </select>
        </label>
        <label className="row">
          <span className="m">to</span>
          <select className="input" value={after} onChange={({ target }) => setAfter(target.value)}>
            <option value={DRAFT}>this draft</option>
            {options.map((version) => (
              <option key={version}>{version}</option>
            ))}
          </select>
        </label>
      </div>
      {old === undefined || fresh === undefined ? (
        <SkeletonRows count={3} />
      ) : (
        <WorkflowDiffView before={old} after={fresh} />
      )}
      <DialogButtons>
        {old !== undefined && old !== document.text && (
          <button
            type="button"
            className="btn"
            onClick={() => {
              execute({ kind: "set-source", text: old });
              onClose();
            }}
          >
            Go back to {before}
          </button>
        )}
        <button type="button" className="btn" onClick={onClose}>
          Close
        </button>
      </DialogButtons>
    </Dialog>
  );
}

/** undefined: it loads. */
function useText(version: string): string | undefined {
  const { product, document } = useEditor();
  const { data } = useQuery({ ...versionQuery(product.id, version), enabled: version !== DRAFT });
  return version === DRAFT ? document.text : data?.content;
}
