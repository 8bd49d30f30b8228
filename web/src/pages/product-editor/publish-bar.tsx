import { useQuery } from "@tanstack/react-query";
import { DoneIcon, WaitingIcon } from "../../components/icons.tsx";
import { lastTestRunQuery } from "../../queries/product-editor.ts";
import { type ChecklistItem, checklistOf } from "./checklist.ts";
import { useEditor } from "./editor-context.tsx";
import { ScanItem } from "./scan-item.tsx";

export function useChecklist(): ChecklistItem[] {
  const { draft, state, product } = useEditor();
  const { data } = useQuery(lastTestRunQuery(product.id));
  return checklistOf({ draft, errors: state.errors, hasRun: Boolean(data) });
}

/** What is done and what is not, each with the way to its field. */
export function PublishBar() {
  const { product, goTo } = useEditor();
  const items = useChecklist();
  const done = items.filter(({ isDone }) => isDone).length;
  return (
    <section className="editor-publish" aria-label="Before you publish">
      <span className="b num nowrap">
        {done} of {items.length}
      </span>
      <ol>
        {items.map((item) => (
          <li key={item.target} className={item.isDone ? "" : "is-open"}>
            {item.isDone ? <DoneIcon className="good" /> : <WaitingIcon />}
            {item.isDone ? (
              <span>
                {item.label}
                <span className="hidden">: done</span>
              </span>
            ) : (
              <button type="button" onClick={() => goTo(item.target, item.tab)}>
                {item.label}
                {!item.isRequired && <span className="faint"> optional</span>}
              </button>
            )}
          </li>
        ))}
        <ScanItem />
      </ol>
      {product.status === "published" && (
        <span className="soft sm desk">Version {product.version} stays on sale until you publish</span>
      )}
    </section>
  );
}
