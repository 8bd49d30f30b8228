import type { ProductDetail } from "@stoa/sdk";
import { getRouteApi } from "@tanstack/react-router";
import { createContext, type ReactNode, useContext } from "react";
import { type ControlProps, Field } from "../../components/field.tsx";
import type { EditorSearch, EditorTab } from "../../queries/product-editor.ts";
import { type Draft, type DraftField, FIELDS } from "./draft-fields.ts";
import type { DraftState, DraftStore } from "./draft-store.ts";

const route = getRouteApi("/studio/products/$productId");

export interface Editor {
  product: ProductDetail;
  store: DraftStore;
  state: DraftState;
  /** What is missing for the publication, once a person has asked for it. */
  missing: Partial<Record<DraftField, string>>;
  /** Opens the tab of a field and moves the focus into the field. */
  goTo: (target: string, tab: EditorTab) => void;
  /** The product has changed by another request than that of its fields. */
  reload: () => Promise<void>;
}

const EditorContext = createContext<Editor | null>(null);
export const EditorProvider = EditorContext.Provider;

export function useEditor(): Editor & { draft: Draft; change: (part: Partial<Draft>) => void } {
  const editor = useContext(EditorContext);
  if (!editor) throw new Error("There is no editor around");
  return { ...editor, draft: editor.state.draft, change: (part) => editor.store.change(part) };
}

/** Changes the address of the editor. Tabs are no steps of the browser's history, as those of a form. */
export function useEditorSearch(): [EditorSearch, (part: Partial<EditorSearch>) => Promise<void>] {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  return [
    search,
    (part) => navigate({ search: (old) => ({ ...old, ...part }), replace: true, resetScroll: false }),
  ];
}

interface DraftFieldProps {
  name: DraftField;
  label?: ReactNode;
  hint?: ReactNode;
  children: (control: ControlProps) => ReactNode;
}

/** A field of the draft with its error. The publish bar finds it by its name. */
export function EditorField({ name, label = FIELDS[name].label, hint, children }: DraftFieldProps) {
  const { state, missing } = useEditor();
  return (
    <div data-field={name}>
      <Field label={label} hint={hint} error={state.errors[name] ?? missing[name]}>
        {children}
      </Field>
    </div>
  );
}

type TextField = "title" | "license" | "price" | "currency" | "commission";

export function TextEditorField({
  name,
  hint,
  ...input
}: { name: TextField; hint?: ReactNode } & Omit<
  React.ComponentProps<"input">,
  "name" | "value" | "onChange"
>) {
  const { draft, change } = useEditor();
  return (
    <EditorField name={name} hint={hint}>
      {(control) => (
        <input
          {...control}
          {...input}
          className="input"
          autoComplete="off"
          dir="auto"
          value={draft[name]}
          onChange={({ target }) => change({ [name]: target.value })}
        />
      )}
    </EditorField>
  );
}
