import { useQuery } from "@tanstack/react-query";
import { ErrorStrip } from "../../components/page-error.tsx";
import { SkeletonRows } from "../../components/skeleton.tsx";
import { Time } from "../../components/time.tsx";
import { allVersionsQuery } from "../../queries/product-editor.ts";
import { versionQuery } from "../../queries/running.ts";
import { useEditor, useEditorSearch } from "./editor-context.tsx";
import { WordDiff } from "./word-diff.tsx";

/** The name of the draft among the versions; no version has it. */
const DRAFT = "draft";

/** All versions with their changelogs, and what changed between two of them. */
export default function VersionsTab() {
  const { product } = useEditor();
  const { data: versions, error } = useQuery(allVersionsQuery(product.id));
  const [{ version, with: other }, setSearch] = useEditorSearch();
  if (error) return <ErrorStrip error={error} />;
  if (!versions) return <SkeletonRows />;
  const after = version ?? DRAFT;
  const before = other ?? versionBefore(versions, after);
  return (
    <div className="editor-versions">
      <ol>
        {[{ version: DRAFT, changelog: "", createdAt: null }, ...versions].map((one) => (
          <li key={one.version}>
            <button
              type="button"
              aria-pressed={one.version === after}
              onClick={() => void setSearch({ version: one.version, with: undefined })}
            >
              <b className="num">{one.version === DRAFT ? "The draft" : one.version}</b>
              {one.createdAt && <Time iso={one.createdAt} isDay className="soft sm" />}
              <span className="sm soft" dir="auto">
                {one.changelog || (one.version === DRAFT ? "What you write now" : "No changelog")}
              </span>
            </button>
          </li>
        ))}
      </ol>
      <section className="stack" aria-label="Changes">
        <div className="row wrap">
          <h2 className="h3">{after === DRAFT ? "The draft" : after} compared with</h2>
          <select
            className="input editor-country"
            aria-label="Compared with"
            value={before}
            onChange={({ target }) => void setSearch({ with: target.value })}
          >
            {versions.map((one) => (
              <option key={one.version}>{one.version}</option>
            ))}
          </select>
        </div>
        <Comparison before={before} after={after} />
      </section>
    </div>
  );
}

function versionBefore(versions: { version: string }[], shown: string): string {
  const at = versions.findIndex(({ version }) => version === shown);
  return (versions[at + 1] ?? versions.at(-1))?.version ?? "";
}

function Comparison({ before, after }: { before: string; after: string }) {
  const one = useContent(before);
  const other = useContent(after);
  const error = one.error ?? other.error;
  if (error) return <ErrorStrip error={error} />;
  if (!one.content || !other.content) return <SkeletonRows count={3} />;
  const isSame = one.content.content === other.content.content;
  const isVariableChange = one.content.variables !== other.content.variables;
  return (
    <>
      {isSame ? (
        <p className="soft">The prompt is the same.</p>
      ) : (
        <WordDiff before={one.content.content} after={other.content.content} />
      )}
      {isVariableChange && (
        <>
          <h3 className="h3">Variables</h3>
          <WordDiff before={one.content.variables} after={other.content.variables} />
        </>
      )}
    </>
  );
}

function useContent(version: string) {
  const { draft, product } = useEditor();
  const isDraft = version === DRAFT;
  const { data, error } = useQuery({
    ...versionQuery(product.id, version),
    enabled: !isDraft && version !== "",
  });
  const source = isDraft ? draft : data;
  return {
    error,
    content: source && { content: source.content, variables: JSON.stringify(source.variables, null, 2) },
  };
}
