import type { ProductChecks, ProductDetail } from "@stoa/sdk";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { TextWithHidden } from "../../components/hidden-characters.tsx";
import { Markdown } from "../../components/markdown.tsx";
import { Time } from "../../components/time.tsx";
import { formatCount } from "../../lib/format.ts";
import { type DiffLine, type DiffRow, diffTexts } from "../../lib/text-diff.ts";
import { DIFF_FORMS, parseQueueSearch } from "../../queries/moderation.ts";

const route = getRouteApi("/admin-shell/admin/moderation");

type Approved = NonNullable<ProductChecks["approved"]>;

const FORM_NAMES = { words: "Words", lines: "Lines", rendered: "Rendered" };

interface ProductDiffProps {
  product: ProductDetail;
  approved: Approved | null;
}

/** What changed since moderators approved the product; all of it if they never did. */
export function ProductDiff({ product, approved }: ProductDiffProps) {
  const { diff: form = "words" } = parseQueueSearch({ ...route.useSearch() });
  const content = product.content ?? "";
  return (
    <section className="beam thin stack" aria-label="Changes">
      <div className="row wrap between">
        <h3>
          {approved ? "Changes since the last approval" : "Content"}{" "}
          {approved && (
            <span className="soft normal">
              version {approved.version}, <Time iso={approved.createdAt} isDay />
            </span>
          )}
        </h3>
        <div className="seg s">
          {DIFF_FORMS.map((each) => (
            <Link
              key={each}
              to="."
              search={(old: object) => ({ ...old, diff: each === "words" ? undefined : each })}
              aria-current={each === form ? "true" : undefined}
              resetScroll={false}
            >
              {FORM_NAMES[each]}
            </Link>
          ))}
        </div>
      </div>
      {form === "rendered" ? (
        <RenderedTexts content={content} approved={approved} />
      ) : (
        <TextDiff name="Content" before={approved?.content ?? null} after={content} form={form} />
      )}
      <Fields product={product} approved={approved} form={form === "lines" ? "lines" : "words"} />
    </section>
  );
}

const RenderedTexts = ({ content, approved }: { content: string; approved: Approved | null }) => (
  <div className={approved ? "review-rendered two" : "review-rendered"}>
    {approved && (
      <section className="panel" aria-label={`Version ${approved.version}`}>
        <p className="xs soft">Approved</p>
        <div className="markdown">
          <Markdown text={approved.content} />
        </div>
      </section>
    )}
    <section className="panel" aria-label="Present version">
      <p className="xs soft">Now</p>
      <div className="markdown">
        <Markdown text={content} />
      </div>
    </section>
  </div>
);

interface FieldsProps extends ProductDiffProps {
  form: "words" | "lines";
}

/** The other texts of the product page: those that changed, and by name those that did not. */
function Fields({ product, approved, form }: FieldsProps) {
  if (!approved)
    return (
      <>
        <h4 className="sm soft">Description</h4>
        <TextDiff name="Description" before={null} after={product.description} form={form} />
      </>
    );
  const texts = [
    ["Title", approved.title, product.title],
    ["Description", approved.description, product.description],
  ] as const;
  const same = texts.filter(([, before, after]) => before === after).map(([name]) => name);
  return (
    <>
      {texts.map(
        ([name, before, after]) =>
          before !== after && (
            <div key={name} className="stack">
              <h4 className="sm soft">{name}</h4>
              <TextDiff name={name} before={before} after={after} form={form} />
            </div>
          ),
      )}
      {same.length > 0 && (
        <p className="row wrap sm soft unchanged">
          {same.map((name) => (
            <span key={name}>{name} unchanged</span>
          ))}
        </p>
      )}
    </>
  );
}

interface TextDiffProps {
  name: string;
  /** null: there is nothing to compare with, and the whole text stands there. */
  before: string | null;
  after: string;
  form: "words" | "lines";
}

function TextDiff({ name, before, after, form }: TextDiffProps) {
  const [isWhole, setWhole] = useState(false);
  const rows = useMemo(() => diffTexts(before ?? after, after, form), [before, after, form]);
  if (before === after) return <p className="sm soft">{name} unchanged</p>;
  const shown: DiffRow[] = before === null || isWhole ? wholeOf(rows, after) : rows;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls needs the focus to be scrolled by keys
    <section className="text-diff" aria-label={name} tabIndex={0}>
      {shown.map((row, at) =>
        row.kind === "gap" ? (
          <button key={`gap ${row.line}`} type="button" onClick={() => setWhole(true)}>
            {formatCount(row.count)} unchanged {row.count === 1 ? "line" : "lines"}
          </button>
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: a line has no other name
          <Line key={at} line={row} />
        ),
      )}
    </section>
  );
}

/** The rows with the lines that a gap leaves out. */
function wholeOf(rows: DiffRow[], after: string): DiffRow[] {
  const lines = after.split("\n");
  return rows.flatMap((row): DiffRow[] =>
    row.kind === "gap"
      ? lines.slice(row.line - 1, row.line - 1 + row.count).map((text, at) => ({
          kind: "same",
          line: row.line + at,
          parts: [{ text, isChanged: false }],
        }))
      : [row],
  );
}

const SIGNS = { same: "", added: "+", removed: "−" };
const SIGN_NAMES = { same: "", added: "Added: ", removed: "Removed: " };

const Line = ({ line: { kind, line, parts } }: { line: DiffLine }) => {
  const Changed = kind === "removed" ? "del" : "ins";
  return (
    <div className={kind}>
      <span aria-hidden="true">{line}</span>
      <span>
        <span aria-hidden="true">{SIGNS[kind]}</span>
        <span className="hidden">{SIGN_NAMES[kind]}</span>
      </span>
      <span dir="auto">
        {parts.map(({ text, isChanged }, at) => {
          const Part = isChanged ? Changed : "span";
          return (
            // biome-ignore lint/suspicious/noArrayIndexKey: a part has no other name
            <Part key={at}>
              <TextWithHidden text={text} />
            </Part>
          );
        })}
      </span>
    </div>
  );
};
