import { hasDetails } from "../../lib/prompt-variables.ts";
import type { EditorTab } from "../../queries/product-editor.ts";
import type { Draft, DraftField } from "./draft-fields.ts";
import type { FieldErrors } from "./find-errors.ts";

export interface ChecklistItem {
  label: string;
  isDone: boolean;
  /** Without it the service refuses the publication. */
  isRequired: boolean;
  tab: EditorTab;
  /** What gets the focus. */
  target: string;
  field?: DraftField;
  /** Why, for the field. */
  reason?: string;
}

interface Facts {
  draft: Draft;
  errors: FieldErrors;
  hasRun: boolean;
}

/** What a product needs before it is sold, in the order of the editor. The first five are also rules of the service. */
export function checklistOf({ draft, errors, hasRun }: Facts): ChecklistItem[] {
  const vague = draft.variables.find((variable) => !hasDetails(variable) && variable.default === undefined);
  const required = (
    field: DraftField,
    tab: EditorTab,
    labels: [string, string],
    isDone: boolean,
    reason: string,
  ) => ({
    label: isDone ? labels[0] : labels[1],
    isDone: isDone && !(field in errors),
    ...{ isRequired: true, tab, target: field, field, reason },
  });
  return [
    required(
      "content",
      "prompt",
      ["Prompt", "Write the prompt"],
      draft.content.trim() !== "",
      "Write what the model should do.",
    ),
    required("title", "details", ["Title", "Add a title"], draft.title.trim() !== "", "Enter a title."),
    required(
      "description",
      "details",
      ["Description", "Describe it"],
      draft.description.trim() !== "",
      "Say what a buyer gets.",
    ),
    required(
      "category",
      "details",
      ["Category", "Choose a category"],
      draft.category !== "",
      "Choose a category.",
    ),
    required(
      "compatibility",
      "details",
      ["Providers", "Choose providers"],
      draft.compatibility.length > 0,
      "Choose at least one provider.",
    ),
    required("price", "price", ["Price", "Set a price"], Number(draft.price) > 0, "Enter a price above 0."),
    { label: "Test run", isDone: hasRun, isRequired: false, tab: "prompt", target: "test-run" },
    {
      label: vague ? `Describe ${vague.name}` : "Variables",
      isDone: vague === undefined,
      isRequired: false,
      tab: "prompt",
      target: vague ? `variable ${vague.name}` : "content",
    },
    {
      label: draft.samples.length > 0 ? "Sample output" : "Add a sample output",
      isDone: draft.samples.length > 0,
      isRequired: false,
      tab: "samples",
      target: "samples",
    },
  ];
}
