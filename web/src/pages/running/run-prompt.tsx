import type { ExecutionDetail, ProductDetail } from "@stoa/sdk";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { lazy, useEffect, useRef, useState } from "react";
import { stoa } from "../../api.ts";
import { CopyButton } from "../../components/copy-button.tsx";
import { ErrorSummary, fieldErrors } from "../../components/field.tsx";
import { ColumnsIcon, PlayIcon } from "../../components/icons.tsx";
import { ErrorStrip } from "../../components/page-error.tsx";
import { Part } from "../../components/part.tsx";
import { EstimateBox } from "../../components/running/estimate-box.tsx";
import { LimitFields } from "../../components/running/limit-fields.tsx";
import {
  type PromptForm,
  toExecute,
  useEstimate,
  usePromptForm,
} from "../../components/running/prompt-form.ts";
import { ReceiptButton } from "../../components/running/receipt-dialog.tsx";
import { RunBar } from "../../components/running/run-bar.tsx";
import { StartErrorStrip } from "../../components/running/run-failure.tsx";
import { RunHistory } from "../../components/running/run-history.tsx";
import {
  isActive,
  outputOf,
  RunMeter,
  RunOutput,
  StopButton,
  useStop,
} from "../../components/running/run-output.tsx";
import { type KeyChoice, useKeyChoices, useModels } from "../../components/running/run-target.ts";
import { ShareButton } from "../../components/running/share-dialog.tsx";
import { TargetFields } from "../../components/running/target-fields.tsx";
import { VariableFields } from "../../components/running/variable-fields.tsx";
import { SkeletonRows } from "../../components/skeleton.tsx";
import { curlOf } from "../../lib/curl.ts";
import { useEndOfRun, useFollowedRun } from "../../lib/follow-run.ts";
import { formatCost } from "../../lib/format.ts";
import { literalOf } from "../../lib/object-literal.ts";
import { type CostRange, rangeOf } from "../../lib/run-costs.ts";
import { useStartOnce } from "../../lib/start-once.ts";
import { useRunKeys } from "../../lib/use-run-keys.ts";
import { executionQuery } from "../../queries/running.ts";

const Compare = lazy(() => import("./run-compare.tsx"));

const route = getRouteApi("/run/$productId");

/** The page of a prompt: its form, and beside it the output of a run. */
export function PromptRunner({ product }: { product: ProductDetail }) {
  const { run, runs, from, tab, version } = route.useSearch();
  const keys = useKeyChoices(product.compatibility);
  const client = useQueryClient();
  // Loaded by the route; later runs do not change the form.
  const [earlier] = useState(() => {
    const id = from ?? run ?? runs?.split(",")[0];
    const execution = id === undefined ? undefined : client.getQueryData(executionQuery(id).queryKey);
    return execution ? { execution, isWanted: from !== undefined } : null;
  });
  const form = usePromptForm({ product, keys, earlier, version });
  const request = toExecute({ product, ...form });
  const code = {
    curl: curlOf("POST", "/ai/execute", request),
    sdk: `for await (const text of stoa.ai.stream(${literalOf(request)}).text())\n  process.stdout.write(text);`,
  };
  return (
    <main id="content" className="run-page">
      <RunBar product={product} version={form.target.version} code={code} />
      {tab === "history" && <RunHistory product={product} />}
      {tab === "compare" && (
        <Part fallback={<SkeletonRows />}>
          <Compare product={product} form={form} keys={keys} />
        </Part>
      )}
      {tab === undefined && <RunView product={product} form={form} keys={keys} />}
    </main>
  );
}

const POLL_MS = 15_000;

interface RunViewProps {
  product: ProductDetail;
  form: PromptForm;
  keys: KeyChoice[];
}

function RunView({ product, form, keys }: RunViewProps) {
  const { run } = route.useSearch();
  const navigate = route.useNavigate();
  const client = useQueryClient();
  const shown = useQuery({
    ...executionQuery(run ?? ""),
    enabled: run !== undefined,
    // Beside the events, in case the last one is missed.
    refetchInterval: ({ state }) => (state.data && isActive(state.data) ? POLL_MS : false),
  });
  const execution = run === undefined ? undefined : shown.data;
  const isRunning = execution !== undefined && isActive(execution);
  const followed = useFollowedRun(run, isRunning);
  useEndOfRun(execution?.id, execution?.status);
  const [isChecked, check] = useState(false);
  const [isEditing, edit] = useState(false);
  const request = toExecute({ product, ...form });
  const isComplete =
    form.target.keyId !== "" &&
    form.target.model !== "" &&
    Object.keys({ ...form.valueErrors, ...form.limitErrors }).length === 0;
  const estimate = useEstimate(request, isComplete);
  const range = estimate.data ? rangeOf(estimate.data) : null;
  const { start, isPending, error, clearError } = useStartOnce((body: typeof request, options) =>
    stoa.ai.executeInBackground(body, options),
  );
  const { stop } = useStop(isRunning ? run : undefined);
  const startRun = async () => {
    check(true);
    if (!isComplete) return edit(true);
    const accepted = await start(request);
    if (!accepted) return;
    check(false);
    edit(false);
    void client.invalidateQueries({ queryKey: ["executions"] });
    await navigate({
      search: (old) => ({ ...old, run: accepted.executionId, from: undefined }),
      resetScroll: false,
    });
  };
  useRunKeys({ run: () => !isRunning && void startRun(), ...(isRunning && { stop: () => void stop() }) });
  const key = keys.find(({ id }) => id === form.target.keyId);
  const models = useModels(key?.provider);
  const serverErrors = fieldErrors(error);
  const errors = { ...byName(serverErrors, "variables."), ...(isChecked && form.valueErrors) };
  const button = { range, isPending, isRunning, hasKey: keys.length > 0, onRun: () => void startRun() };
  return (
    <>
      <div className="run-lay">
        <form
          className={run === undefined || isEditing ? "run-in is-open" : "run-in"}
          onSubmit={(event) => event.preventDefault()}
          onChange={clearError}
          noValidate
        >
          {run !== undefined && (
            <button
              type="button"
              className="link row between edit-input phone"
              onClick={() => edit(!isEditing)}
            >
              <span className="cut soft">{summaryOf(form)}</span>
              <span className="nowrap">{isEditing ? "Hide input" : "Edit input"}</span>
            </button>
          )}
          <div className="run-fields">
            <MissingValues form={form} isShown={isChecked} />
            {Object.keys(serverErrors).length > 0 && (
              <ErrorSummary error={error} title="The run did not start" />
            )}
            <VariableFields
              variables={form.variables}
              values={form.values}
              errors={errors}
              onChange={form.setValue}
            />
            {form.variables.length === 0 && <p className="soft">This prompt asks for nothing.</p>}
            <TargetFields
              product={product}
              keys={keys}
              target={form.target}
              onChange={form.setTarget}
              errors={serverErrors}
              scoreCard={product.scoreCard}
            />
            <LimitFields product={product} form={form} errors={serverErrors} />
            <EstimateBox
              estimate={estimate.data}
              error={estimate.error}
              models={models}
              isAnswerLimited={form.limits.maxTokens !== "" || form.limits.maxCost !== ""}
            />
            <div className="stack desk">
              <RunButton {...button} />
              <Link to="." search={(old: object) => ({ ...old, tab: "compare" as const })} className="btn">
                <ColumnsIcon /> Run on other models too
              </Link>
              <p className="xs faint">
                <span className="kbd">Ctrl Enter</span> runs, <span className="kbd">Esc</span> stops
              </p>
            </div>
          </div>
        </form>
        <section className="run-out" aria-label="Output of the run">
          {error !== null && Object.keys(serverErrors).length === 0 && (
            <StartErrorStrip error={error} provider={key?.provider ?? null} last4={key?.last4} />
          )}
          {run === undefined && <FirstRun />}
          {shown.error && (
            <div className="output-note">
              <ErrorStrip error={shown.error} onRetry={() => void shown.refetch()} />
            </div>
          )}
          {run !== undefined && !execution && !shown.error && <SkeletonRows count={4} />}
          {execution && (
            <>
              <RunMeter
                execution={execution}
                followed={followed}
                range={range}
                promptTokens={estimate.data?.calls[0]?.promptTokens.min ?? 0}
              />
              <RunOutput
                execution={execution}
                followed={followed}
                last4={lastFour(keys, execution)}
                onRetry={() => void startRun()}
                actions={execution.status === "completed" && <EndedActions execution={execution} />}
              />
            </>
          )}
          <RunHistory product={product} isShort except={run} />
        </section>
      </div>
      <div className="stopbar phone">
        {execution && isRunning ? (
          <>
            <CopyButton text={outputOf(execution, followed)} className="btn" />
            <StopButton executionId={execution.id} />
          </>
        ) : (
          <RunButton {...button} />
        )}
      </div>
    </>
  );
}

/** The digits of the key, if only one of this provider can have run it. */
function lastFour(keys: KeyChoice[], { provider }: ExecutionDetail): string | undefined {
  const own = keys.filter((key) => key.provider === provider);
  return own.length === 1 ? own[0]?.last4 : undefined;
}

const byName = (errors: Record<string, string>, prefix: string) =>
  Object.fromEntries(
    Object.entries(errors).flatMap(([field, text]) =>
      field.startsWith(prefix) ? [[field.slice(prefix.length), text]] : [],
    ),
  );

const summaryOf = ({ variables, values, target }: PromptForm): string =>
  [...variables.map(({ name }) => `${name}: ${values[name] || "–"}`), target.model].join(", ");

const EndedActions = ({ execution }: { execution: ExecutionDetail }) => (
  <>
    <ShareButton execution={execution} />
    <ReceiptButton executionId={execution.id} />
  </>
);

const FirstRun = () => (
  <div className="first-run">
    <h2>The answer appears here</h2>
    <p className="soft">
      Word by word, as the model writes it. Every run is in the history for 30 days, with its texts.
    </p>
  </div>
);

/** What is missing, above the fields. It takes the focus, so that everyone notices. */
function MissingValues({ form, isShown }: { form: PromptForm; isShown: boolean }) {
  const summary = useRef<HTMLDivElement>(null);
  const missing = [
    ...Object.entries(form.valueErrors).map(([name, text]) => `${name}: ${text}`),
    ...(form.target.keyId === "" ? ["Provider key: Choose one, or add one."] : []),
    ...(form.target.keyId !== "" && form.target.model === "" ? ["Model: Choose one."] : []),
    ...Object.values(form.limitErrors),
  ];
  const isVisible = isShown && missing.length > 0;
  useEffect(() => {
    if (isVisible) summary.current?.focus();
  }, [isVisible]);
  if (!isVisible) return null;
  return (
    <div className="error-summary" role="alert" tabIndex={-1} ref={summary}>
      <b>{missing.length === 1 ? "1 field needs a change" : `${missing.length} fields need a change`}</b>
      <ul>
        {missing.map((text) => (
          <li key={text}>{text}</li>
        ))}
      </ul>
    </div>
  );
}

interface RunButtonProps {
  range: CostRange | null;
  isPending: boolean;
  isRunning: boolean;
  hasKey: boolean;
  onRun: () => void;
}

function RunButton({ range, isPending, isRunning, hasKey, onRun }: RunButtonProps) {
  return (
    <button
      type="button"
      className="btn primary run-button"
      disabled={isPending || isRunning || !hasKey}
      onClick={onRun}
    >
      <PlayIcon /> {isPending ? "Starting" : isRunning ? "Running" : `Run${amountOf(range)}`}
    </button>
  );
}

/** For a button: the amount that it is about to cost. */
export const amountOf = (range: CostRange | null): string => {
  if (range === null) return "";
  return range.high === 0 ? ", free" : `, about ${formatCost(range.high)}`;
};
