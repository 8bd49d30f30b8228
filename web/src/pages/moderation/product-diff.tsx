import type { ProductChecks, ProductDetail } from "@stoa/sdk";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Markdown } from "../../components/markdown.tsx";
import { Time } from "../../components/time.tsx";
import { WorkflowDiffView } from "../../components/workflow-editor/workflow-diff.tsx";
import { listDetailChanges } from "../../lib/detail-changes.ts";
import { parseQueueSearch } from "../../queries/moderation.ts";
import { DetailDiff } from "./detail-diff.tsx";
import { TextDiff } from "./text-diff.tsx";

const route = getRouteApi("/admin-shell/admin/moderation");

type Approved = NonNullable<ProductChecks["approved"]>;

const FORM_NAMES = { words: "Words", lines: "Lines", rendered: "Rendered", steps: "Steps" };
const FORMS = {
  text: ["words", "lines", "rendered"],
  workflow: ["steps", "words", "lines"],
} as const;

interface ProductDiffProps {
  product: ProductDetail;
  approved: Approved | null;
}

/** What changed since moderators approved the product; all of it if they never did. */
export function ProductDiff({ product, approved }: ProductDiffProps) {
  const { diff: chosen } = parseQueueSearch({ ...route.useSearch() });
  const content = product.content ?? "";
  // The first version of a workflow has no steps to compare.
  const forms = FORMS[product.type === "WORKFLOW" && approved ? "workflow" : "text"];
  const form = forms.find((each) => each === chosen) ?? forms[0];
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
          {forms.map((each) => (
            <Link
              key={each}
              to="."
              search={(old: object) => ({ ...old, diff: each === forms[0] ? undefined : each })}
              aria-current={each === form ? "true" : undefined}
              resetScroll={false}
            >
              {FORM_NAMES[each]}
            </Link>
          ))}
        </div>
      </div>
      {form === "steps" ? (
        <section aria-label="Content">
          <WorkflowDiffView before={approved?.content ?? ""} after={content} />
        </section>
      ) : form === "rendered" ? (
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

/** All else that buyers see: what changed, and by name what did not. */
function Fields({ product, approved, form }: FieldsProps) {
  if (!approved)
    return (
      <>
        <h4 className="sm soft">Description</h4>
        <TextDiff name="Description" before={null} after={product.description} form={form} />
      </>
    );
  const details = approved.details;
  const texts = [
    ["Title", approved.title, product.title],
    ["Description", approved.description, product.description],
    ...(details ? [["Public preview", details.contentPreview, product.contentPreview] as const] : []),
  ] as const;
  const changes = listDetailChanges(approved, product);
  const same = [
    ...texts.filter(([, before, after]) => before === after).map(([name]) => name),
    ...changes.filter(({ isChanged }) => !isChanged).map(({ name }) => name),
  ];
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
      <DetailDiff changes={changes.filter(({ isChanged }) => isChanged)} />
      {details === null && (
        <p className="sm soft">
          Category, tags, price, samples and images were not recorded at that approval: compare them on the
          buyer's view.
        </p>
      )}
      {same.length > 0 && <p className="sm soft">Unchanged: {same.join(", ")}</p>}
    </>
  );
}
