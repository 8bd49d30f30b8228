import type { ScanDraft } from "@stoa/sdk";
import { useQuery } from "@tanstack/react-query";
import { useDebounced } from "../../lib/use-debounced.ts";
import { draftScanQuery } from "../../queries/product-editor.ts";
import { type DraftField, toUpdate } from "./draft-fields.ts";
import { useEditor } from "./editor-context.tsx";
import { isWrong } from "./find-errors.ts";

/** Samples are scanned as they are stored. */
const SCANNED_FIELDS: DraftField[] = [
  "title",
  "description",
  "preview",
  "requirements",
  "features",
  "license",
  "tags",
  "content",
  "contentFormat",
  "variables",
];
const SETTLE_MS = 1_000;

/** What the service would find in the draft as it stands here. Fields that it would refuse are left out. */
export function useDraftScan() {
  const { product, draft, state } = useEditor();
  const fields = SCANNED_FIELDS.filter((field) => !isWrong(field, state.errors));
  const body = useDebounced(JSON.stringify(toUpdate(draft, fields)), SETTLE_MS);
  return useQuery(draftScanQuery(product.id, JSON.parse(body) as ScanDraft));
}
