import "./run.css";
import type { ExecutionDetail, ProductDetail } from "@stoa/sdk";
import { useQuery, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { lazy, useState } from "react";
import { stoa } from "../../api.ts";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { Id } from "../../components/id.tsx";
import { Part } from "../../components/part.tsx";
import { ReceiptButton } from "../../components/running/receipt-dialog.tsx";
import { RunBar } from "../../components/running/run-bar.tsx";
import { RunInput } from "../../components/running/run-input.tsx";
import { isActive, RunMeter, RunOutput, useStop } from "../../components/running/run-output.tsx";
import { costLabel } from "../../components/running/run-table.tsx";
import { ShareButton } from "../../components/running/share-dialog.tsx";
import { SkeletonRows } from "../../components/skeleton.tsx";
import { Time } from "../../components/time.tsx";
import { curlOf } from "../../lib/curl.ts";
import { formatDuration } from "../../lib/duration.ts";
import { useFollowedRun } from "../../lib/follow-run.ts";
import { formatCount } from "../../lib/format.ts";
import { providerName } from "../../lib/providers.ts";
import { showError, showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { useRunKeys } from "../../lib/use-run-keys.ts";
import { useTitle } from "../../lib/use-title.ts";
import { productQuery } from "../../queries/market.ts";
import { executionQuery } from "../../queries/running.ts";

const WorkflowRun = lazy(() => import("./workflow-run.tsx"));

const route = getRouteApi("/runs/$executionId");

/** One run: what went in, what came out, and what it cost. */
export default function RunDetail() {
  const { executionId } = route.useParams();
  const { data: execution } = useSuspenseQuery(executionQuery(executionId));
  // Loaded by the route if it can be read at all.
  const { data: product } = useQuery({ ...productQuery(execution.productId), enabled: false });
  useTitle(`Run of ${product?.title ?? "a product"}`);
  const code = {
    curl: curlOf("GET", `/ai/executions/${execution.id}`),
    sdk: `const run = await stoa.ai.executions.get("${execution.id}");`,
  };
  return (
    <main id="content" className="run-page">
      {product ? (
        <RunBar product={product} version={execution.productVersion} code={code} />
      ) : (
        <div className="run-bar">
          <h1>Run of a product that is no longer here</h1>
        </div>
      )}
      {execution.type === "WORKFLOW" ? (
        <Part fallback={<SkeletonRows />}>
          <WorkflowRun
            executionId={execution.id}
            product={product}
            more={<RunFacts execution={execution} product={product} />}
          />
        </Part>
      ) : (
        <PromptDetail execution={execution} product={product} />
      )}
    </main>
  );
}

interface PartProps {
  execution: ExecutionDetail;
  product: ProductDetail | undefined;
}

function PromptDetail({ execution, product }: PartProps) {
  const isRunning = isActive(execution);
  const followed = useFollowedRun(execution.id, isRunning);
  const { stop } = useStop(isRunning ? execution.id : undefined);
  useRunKeys({ run: () => {}, ...(isRunning && { stop: () => void stop() }) });
  return (
    <div className="run-lay">
      <div className="run-in is-open">
        <div className="run-fields">
          <RunInput variables={execution.variables} />
          <RunFacts execution={execution} product={product} />
        </div>
      </div>
      <section className="run-out" aria-label="Output of the run">
        <RunMeter execution={execution} followed={followed} range={null} />
        <RunOutput
          execution={execution}
          followed={followed}
          actions={
            <>
              {execution.status === "completed" && <ShareButton execution={execution} />}
              {!isRunning && <ReceiptButton executionId={execution.id} />}
            </>
          }
        />
      </section>
    </div>
  );
}

function RunFacts({ execution, product }: PartProps) {
  const { usage, provider, model, duration, attempts } = execution;
  const facts: [string, React.ReactNode][] = [
    ["Model", model && (provider === "sandbox" ? model : `${model}, ${providerName(provider ?? "")}`)],
    ["Cost", costLabel(execution)],
    [
      "Tokens",
      usage &&
        `${formatCount(usage.promptTokens)} in, ${formatCount(usage.completionTokens)} out${usage.estimated ? ", estimated" : ""}`,
    ],
    ["Duration", duration !== null && formatDuration(duration)],
    ["Attempts", attempts > 1 && attempts],
    ["Started", <Time key="started" iso={execution.createdAt} />],
    ["Run", <Id key="id" id={execution.id} />],
  ];
  return (
    <div className="stack beam thin">
      <dl className="kv">
        {facts.map(
          ([term, fact]) =>
            fact && (
              <div key={term}>
                <dt>{term}</dt>
                <dd>{fact}</dd>
              </div>
            ),
        )}
      </dl>
      {!isActive(execution) && (
        <div className="row wrap">
          {product && product.access.reason !== "none" && (
            <Link
              to="/run/$productId"
              params={{ productId: product.id }}
              search={{ from: execution.id }}
              className="btn"
            >
              Run again
            </Link>
          )}
          <DeleteButton execution={execution} />
        </div>
      )}
    </div>
  );
}

function DeleteButton({ execution }: { execution: ExecutionDetail }) {
  const [isAsking, ask] = useState(false);
  const navigate = useNavigate();
  const client = useQueryClient();
  const { start, isPending } = useAction({
    run: async () => await stoa.ai.executions.delete(execution.id),
    onSuccess: async () => {
      client.removeQueries({ queryKey: ["executions"] });
      showToast("The run is deleted");
      await navigate({ to: "/runs" });
    },
    onError: (error) => showError("The run was not deleted", error),
  });
  return (
    <>
      <button type="button" className="btn danger" onClick={() => ask(true)}>
        Delete
      </button>
      {isAsking && (
        <ConfirmDialog
          title="Delete this run?"
          action="Delete the run"
          keep="Keep it"
          isPending={isPending}
          onConfirm={() => start()}
          onClose={() => ask(false)}
        >
          <p>
            Its input and output are erased at once{execution.share ? ", and its public link ends" : ""}. This
            cannot be undone.
          </p>
        </ConfirmDialog>
      )}
    </>
  );
}
