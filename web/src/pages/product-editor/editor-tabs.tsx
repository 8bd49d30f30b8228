import { useQuery } from "@tanstack/react-query";
import { lazy, type ReactNode } from "react";
import { AlertIcon } from "../../components/icons.tsx";
import { Part } from "../../components/part.tsx";
import { SkeletonRows } from "../../components/skeleton.tsx";
import { testSetQuery } from "../../queries/evaluations.ts";
import type { EditorTab } from "../../queries/product-editor.ts";
import { type DraftField, FIELDS } from "./draft-fields.ts";
import { useEditor, useEditorSearch } from "./editor-context.tsx";
import { PromptTab } from "./prompt-tab.tsx";

const Details = lazy(() => import("./details-tab.tsx"));
const Price = lazy(() => import("./price-tab.tsx"));
const Media = lazy(() => import("./media-tab.tsx"));
const Samples = lazy(() => import("./samples-tab.tsx"));
const Tests = lazy(() => import("./tests-tab.tsx"));
const Tries = lazy(() => import("./tries-tab.tsx"));
const Discounts = lazy(() => import("./discounts-tab.tsx"));
const Referrals = lazy(() => import("./referrals-tab.tsx"));
const Versions = lazy(() => import("./versions-tab.tsx"));

const TABS: { tab: EditorTab; label: string; content: ReactNode }[] = [
  { tab: "prompt", label: "Prompt", content: <PromptTab /> },
  { tab: "details", label: "Details", content: <Details /> },
  { tab: "price", label: "Price", content: <Price /> },
  { tab: "media", label: "Images and files", content: <Media /> },
  { tab: "samples", label: "Samples", content: <Samples /> },
  { tab: "tests", label: "Tests", content: <Tests /> },
  { tab: "tries", label: "Tries", content: <Tries /> },
  { tab: "discounts", label: "Discounts", content: <Discounts /> },
  { tab: "referrals", label: "Referrals", content: <Referrals /> },
  { tab: "versions", label: "Versions", content: <Versions /> },
];

export function EditorTabs() {
  const [{ tab = "prompt" }, setSearch] = useEditorSearch();
  const { state, missing, product, draft } = useEditor();
  const wrong = new Set(
    (Object.keys({ ...missing, ...state.errors }) as DraftField[]).map((field) => FIELDS[field].tab),
  );
  const { data: testSet } = useQuery(testSetQuery(product.id));
  const counts: Partial<Record<EditorTab, number>> = {
    media: product.gallery.length + (product.files?.length ?? 0),
    samples: draft.samples.length,
    tests: testSet?.cases.length ?? 0,
  };
  return (
    <nav className="editor-tabs" aria-label="Parts of the product">
      {TABS.map((one) => (
        <button
          key={one.tab}
          type="button"
          aria-current={one.tab === tab ? "page" : undefined}
          onClick={() => void setSearch({ tab: one.tab === "prompt" ? undefined : one.tab })}
        >
          {one.label}
          {(counts[one.tab] ?? 0) > 0 && <span className="faint num">{counts[one.tab]}</span>}
          {wrong.has(one.tab) && (
            <>
              <AlertIcon className="bad" />
              <span className="hidden">has something to correct</span>
            </>
          )}
        </button>
      ))}
    </nav>
  );
}

export function TabContent() {
  const [{ tab = "prompt" }] = useEditorSearch();
  const shown = TABS.find((one) => one.tab === tab);
  if (tab === "prompt") return shown?.content;
  return (
    <div className="editor-tab">
      <Part fallback={<SkeletonRows />}>{shown?.content}</Part>
    </div>
  );
}
