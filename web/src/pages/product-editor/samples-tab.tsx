import { EmptyState } from "../../components/empty-state.tsx";
import { AlertIcon, ArrowUpIcon, TrashIcon } from "../../components/icons.tsx";
import { Markdown } from "../../components/markdown.tsx";
import { useEditor, useEditorSearch } from "./editor-context.tsx";

/** Outputs that everybody may read, copied from the seller's own runs. */
export default function SamplesTab() {
  const { draft, change, state } = useEditor();
  const [, setSearch] = useEditorSearch();
  const { samples } = draft;
  const add = (
    <button type="button" className="btn" onClick={() => void setSearch({ tab: undefined, pane: "run" })}>
      Run the prompt
    </button>
  );
  if (samples.length === 0)
    return (
      <div data-field="samples">
        <EmptyState title="No sample outputs yet" action={add}>
          Run the saved prompt, then press “Use as sample” beside its output. Buyers see it on the product's
          page.
        </EmptyState>
      </div>
    );
  return (
    <div className="stack form editor-form" data-field="samples">
      {state.errors.samples !== undefined && (
        <p className="ferr">
          <AlertIcon /> {state.errors.samples}
        </p>
      )}
      {samples.map((sample, at) => (
        <article
          className="panel editor-sample stack"
          key={sample.executionId ?? JSON.stringify(sample.input)}
        >
          <div className="row">
            <b className="grow">
              Sample {at + 1}
              {sample.model && <span className="soft"> of {sample.model}</span>}
            </b>
            <button
              type="button"
              className="iconb"
              aria-label={`Move sample ${at + 1} up`}
              disabled={at === 0}
              onClick={() => change({ samples: samples.toSpliced(at, 1).toSpliced(at - 1, 0, sample) })}
            >
              <ArrowUpIcon />
            </button>
            <button
              type="button"
              className="iconb"
              aria-label={`Remove sample ${at + 1}`}
              onClick={() => change({ samples: samples.toSpliced(at, 1) })}
            >
              <TrashIcon />
            </button>
          </div>
          {Object.entries(sample.input ?? {}).map(([name, value]) => (
            <p key={name} className="sm soft" dir="auto">
              <code>{name}</code> {String(value)}
            </p>
          ))}
          <div dir="auto" className="editor-sample-output">
            {typeof sample.output === "string" ? (
              <Markdown text={sample.output} />
            ) : (
              <p className="soft">The run is copied when the draft is saved.</p>
            )}
          </div>
        </article>
      ))}
      <div>{add}</div>
    </div>
  );
}
