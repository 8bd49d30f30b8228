import { Link } from "@tanstack/react-router";
import { AlertIcon, BackIcon, RedoIcon, SavedIcon, UndoIcon } from "../../components/icons.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { LOCALE } from "../../lib/format.ts";
import { FIELDS } from "./draft-fields.ts";
import type { SaveState } from "./draft-store.ts";
import { type Editor, useEditor } from "./editor-context.tsx";
import { PublishButton } from "./publish-button.tsx";

/** Title, what is saved, undo and publication. */
export function EditorBar({ onMissing }: { onMissing: (missing: Editor["missing"]) => void }) {
  const { draft, store, state, product } = useEditor();
  return (
    <div className="editor-bar">
      <Link to="/studio/products" className="iconb" aria-label="Back to your products">
        <BackIcon size={20} />
      </Link>
      <h1 className="cut grow" dir="auto">
        {draft.title.trim() || "Without a title"}
      </h1>
      <SaveStatus save={state.save} isLocal={product.publishedAt !== null} />
      <ProductStatus />
      <span className="row editor-history">
        <button
          type="button"
          className="iconb"
          aria-label="Undo"
          disabled={!state.canUndo}
          onClick={() => store.undo()}
        >
          <UndoIcon size={20} />
        </button>
        <button
          type="button"
          className="iconb"
          aria-label="Redo"
          disabled={!state.canRedo}
          onClick={() => store.redo()}
        >
          <RedoIcon size={20} />
        </button>
      </span>
      <PublishButton onMissing={onMissing} />
    </div>
  );
}

const clock = (at: number) => new Date(at).toLocaleTimeString(LOCALE, { hour: "2-digit", minute: "2-digit" });

function SaveStatus({ save, isLocal }: { save: SaveState; isLocal: boolean }) {
  const isBad = save.kind === "failed" || save.kind === "held" || save.kind === "conflict";
  return (
    <span className={isBad ? "row sm bad editor-save" : "row sm soft editor-save"} role="status">
      {isBad ? <AlertIcon /> : <SavedIcon />}
      <span className="cut" title={save.kind === "failed" ? save.text : undefined}>
        {describeSave(save, isLocal)}
      </span>
    </span>
  );
}

function describeSave(save: SaveState, isLocal: boolean): string {
  switch (save.kind) {
    case "saved": {
      const word = isLocal ? "Saved as draft" : "Saved";
      return save.at === null ? (isLocal ? "" : "Saved") : `${word} ${clock(save.at)}`;
    }
    case "waiting":
    case "saving":
      return "Saving";
    case "held":
      return `Not saved: ${save.fields.map((field) => FIELDS[field].label).join(", ")}`;
    case "failed":
      return `Not saved. ${save.text}`;
    case "conflict":
      return "Changed elsewhere";
  }
}

function ProductStatus() {
  const { product } = useEditor();
  const { status, version } = product;
  if (status === "published") return <StatusTag tone="good">On sale {version}</StatusTag>;
  if (status === "pending_review") return <StatusTag tone="warning">Waits for review</StatusTag>;
  if (status === "rejected" || status === "suspended")
    return <StatusTag tone="bad">{status === "rejected" ? "Rejected" : "Suspended"}</StatusTag>;
  return <span className="tag">{status === "unpublished" ? `Off sale ${version}` : `Draft ${version}`}</span>;
}
