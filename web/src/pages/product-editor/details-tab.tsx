import { contentPreview } from "@stoa/contract/content-preview";
import { useQuery } from "@tanstack/react-query";
import { MOST_ENTRIES } from "../../lib/content-limits.ts";
import { LANGUAGES, languageName } from "../../lib/languages.ts";
import { PROVIDERS, providerName } from "../../lib/providers.ts";
import { categoriesQuery } from "../../queries/market.ts";
import { EditorField, TextEditorField, useEditor } from "./editor-context.tsx";

/** What buyers read and filter by. */
export default function DetailsTab() {
  const { draft, change } = useEditor();
  return (
    <div className="stack form editor-form">
      <TextEditorField name="title" maxLength={120} hint="At most 120 characters" />
      <EditorField name="description" hint="What a buyer gets. Markdown, at most 10,000 characters.">
        {(control) => (
          <textarea
            {...control}
            className="input"
            rows={6}
            dir="auto"
            maxLength={10_000}
            value={draft.description}
            onChange={({ target }) => change({ description: target.value })}
          />
        )}
      </EditorField>
      <div className="editor-pair">
        <CategoryField />
        <LanguageField />
      </div>
      <ProvidersField />
      <ModelFields />
      <LinesField name="tags" hint="One a line, at most 20. Searches find them." />
      <LinesField name="features" hint="What the product does well, one a line" />
      <LinesField name="requirements" hint="What buyers need to use it, one a line" />
      <TextEditorField name="license" maxLength={100} hint="What buyers may do with it, such as CC-BY-4.0" />
      <EditorField
        name="preview"
        hint="The part of the prompt that everybody may read. Empty: its beginning."
      >
        {(control) => (
          <textarea
            {...control}
            className="input mono"
            rows={3}
            dir="auto"
            maxLength={2_000}
            placeholder={contentPreview("", draft.content)}
            value={draft.preview}
            onChange={({ target }) => change({ preview: target.value })}
          />
        )}
      </EditorField>
    </div>
  );
}

function CategoryField() {
  const { draft, change } = useEditor();
  const { data } = useQuery(categoriesQuery);
  const categories = data?.data ?? [];
  const parents = categories.filter(({ parent }) => parent === null);
  return (
    <EditorField name="category">
      {(control) => (
        <select
          {...control}
          className="input"
          value={draft.category}
          onChange={({ target }) => change({ category: target.value })}
        >
          {draft.category === "" && <option value="">Choose one</option>}
          {!categories.some(({ slug }) => slug === draft.category) && draft.category !== "" && (
            <option>{draft.category}</option>
          )}
          {parents.map((parent) => (
            <optgroup key={parent.slug} label={parent.name}>
              <option value={parent.slug}>{parent.name}</option>
              {categories
                .filter((child) => child.parent === parent.slug)
                .map((child) => (
                  <option key={child.slug} value={child.slug}>
                    {child.name}
                  </option>
                ))}
            </optgroup>
          ))}
        </select>
      )}
    </EditorField>
  );
}

function LanguageField() {
  const { draft, change, state } = useEditor();
  const known = LANGUAGES.includes(draft.lang) || draft.lang === "" ? LANGUAGES : [draft.lang, ...LANGUAGES];
  return (
    <EditorField name="lang" label="Language of the prompt">
      {(control) => (
        <select
          {...control}
          className="input"
          value={draft.lang}
          onChange={({ target }) => change({ lang: target.value })}
        >
          {state.base.lang === "" && <option value="">Not set</option>}
          {known.map((tag) => (
            <option key={tag} value={tag}>
              {languageName(tag)}
            </option>
          ))}
        </select>
      )}
    </EditorField>
  );
}

function ProvidersField() {
  const { draft, change, state, missing } = useEditor();
  const error = state.errors.compatibility ?? missing.compatibility;
  return (
    <fieldset
      className="plain field"
      data-field="compatibility"
      aria-describedby={error && "providers-error"}
    >
      <legend className="m">Providers</legend>
      <p className="sm soft">Whose models you tried it with. Buyers run it with their own key.</p>
      <div className="editor-checks">
        {PROVIDERS.map((id) => (
          <label className="choice" key={id}>
            <input
              type="checkbox"
              className="check"
              checked={draft.compatibility.includes(id)}
              onChange={({ target }) =>
                change({
                  compatibility: target.checked
                    ? [...draft.compatibility, id]
                    : draft.compatibility.filter((one) => one !== id),
                })
              }
            />
            <span>{providerName(id)}</span>
          </label>
        ))}
      </div>
      {error !== undefined && (
        <p className="ferr" id="providers-error">
          {error}
        </p>
      )}
    </fieldset>
  );
}

function ModelFields() {
  const { draft, change, state } = useEditor();
  if (draft.compatibility.length === 0) return null;
  return (
    <fieldset className="plain field editor-models" data-field="models">
      <legend className="m">Default models</legend>
      <p className="sm soft">The model of a run that names none. Empty: the provider's default.</p>
      <div className="editor-pair">
        {draft.compatibility.map((id) => (
          <label key={id} className="field">
            <span className="sm">{providerName(id)}</span>
            <input
              className="input mono"
              maxLength={200}
              autoComplete="off"
              spellCheck={false}
              value={draft.models[id] ?? ""}
              onChange={({ target }) => {
                const { [id]: _, ...others } = draft.models;
                change({ models: target.value === "" ? others : { ...others, [id]: target.value } });
              }}
            />
          </label>
        ))}
      </div>
      {state.errors.models !== undefined && <p className="ferr">{state.errors.models}</p>}
    </fieldset>
  );
}

function LinesField({ name, hint }: { name: "tags" | "features" | "requirements"; hint: string }) {
  const { draft, change } = useEditor();
  const [entries, characters] = MOST_ENTRIES[name];
  return (
    <EditorField name={name} hint={hint}>
      {(control) => (
        <textarea
          {...control}
          className="input"
          rows={Math.min(Math.max(draft[name].length + 1, 2), 8)}
          dir="auto"
          // Megabytes would block the page. One more than the limit, so that a text that was cut is an error.
          maxLength={entries * (characters + 1) + 1}
          value={draft[name].join("\n")}
          onChange={({ target }) => change({ [name]: target.value === "" ? [] : target.value.split("\n") })}
        />
      )}
    </EditorField>
  );
}
