import "./run.css";
import type { SharedRun } from "@stoa/sdk";
import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { CopyButton } from "../../components/copy-button.tsx";
import { Cover } from "../../components/cover.tsx";
import { OutputText, ViewSwitch } from "../../components/running/output-text.tsx";
import { RunInput } from "../../components/running/run-input.tsx";
import { costLabel } from "../../components/running/run-table.tsx";
import { formatCount, formatDate, formatExactTime } from "../../lib/format.ts";
import { providerName } from "../../lib/providers.ts";
import { productPath } from "../../lib/slug.ts";
import { useTitle } from "../../lib/use-title.ts";
import { sharedRunQuery } from "../../queries/running.ts";

const route = getRouteApi("/shared/$token");

/** A run that its owner shares. */
export default function SharedRunPage() {
  const { token } = route.useParams();
  const { data: run } = useSuspenseQuery(sharedRunQuery(token));
  useTitle(run.product.title);
  const { product, model, provider, version, createdAt, usage } = run;
  return (
    <main className="page shared" id="content">
      <div className="row shared-head">
        <Cover product={{ id: product.id, type: run.type }} className="t" />
        <div className="stack">
          <h1 className="title" dir="auto">
            {product.title}
          </h1>
          <p className="soft">
            A run of version {version} that its owner shares
            {model !== null && `, with ${model}${provider === null ? "" : ` by ${providerName(provider)}`}`}
            {usage && `, ${formatCount(usage.totalTokens)} tokens, ${costLabel(run)}`},{" "}
            <time dateTime={createdAt} title={formatExactTime(createdAt)}>
              {formatDate(createdAt)}
            </time>
          </p>
        </div>
      </div>
      <div className="shared-cols">
        <section className="beam thin">
          <h2 className="h3">Input</h2>
          <RunInput variables={run.input} />
        </section>
        <SharedOutput output={run.output} />
      </div>
      {product.onSale && (
        <p className="row wrap shared-offer">
          <Link to="/p/$slug" params={{ slug: productPath(product) }} className="btn primary">
            See this {run.type === "WORKFLOW" ? "workflow" : "prompt"}
          </Link>
          <span className="soft">Buy it once, run it with your own provider key.</span>
        </p>
      )}
    </main>
  );
}

function SharedOutput({ output }: Pick<SharedRun, "output">) {
  const [isSource, showSource] = useState(false);
  const text = typeof output === "string" ? output : JSON.stringify(output, null, 2);
  const isPlain = isSource || typeof output !== "string";
  return (
    <section className="beam thin">
      <div className="row wrap between">
        <h2 className="h3">Output</h2>
        <div className="row">
          {typeof output === "string" && <ViewSwitch isSource={isSource} onChange={showSource} />}
          <CopyButton text={text} />
        </div>
      </div>
      <article className="reading shared-output" dir="auto">
        <OutputText text={text} isSource={isPlain} />
      </article>
    </section>
  );
}
