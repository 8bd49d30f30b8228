import type { ExecutionDetail, ProductDetail } from "@stoa/sdk";
import { useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useCallback, useEffect, useRef, useState } from "react";
import { stoa } from "../../api.ts";
import { fieldErrors } from "../../components/field.tsx";
import { CloseIcon, PlayIcon, PlusIcon } from "../../components/icons.tsx";
import { ErrorStrip } from "../../components/page-error.tsx";
import { EstimateBox } from "../../components/running/estimate-box.tsx";
import { LimitFields } from "../../components/running/limit-fields.tsx";
import { type PromptForm, toExecute, useEstimate } from "../../components/running/prompt-form.ts";
import { StartErrorStrip } from "../../components/running/run-failure.tsx";
import { MOST_COMPARED } from "../../components/running/run-history.tsx";
import { isActive, RunMeter, RunOutput } from "../../components/running/run-output.tsx";
import { type KeyChoice, type Target, useModels } from "../../components/running/run-target.ts";
import { TargetFields, VersionField } from "../../components/running/target-fields.tsx";
import { VariableFields } from "../../components/running/variable-fields.tsx";
import { useEndOfRun, useFollowedRun } from "../../lib/follow-run.ts";
import { formatCost } from "../../lib/format.ts";
import { addRanges, type CostRange, rangeOf } from "../../lib/run-costs.ts";
import { Intents } from "../../lib/start-once.ts";
import { useRunKeys } from "../../lib/use-run-keys.ts";
import { executionQuery } from "../../queries/running.ts";

const route = getRouteApi("/run/$productId");

interface Column {
  id: number;
  target: Target;
  /** The run that is shown below. */
  run: string | null;
  error: unknown;
}

interface CompareProps {
  product: ProductDetail;
  form: PromptForm;
  keys: KeyChoice[];
}

/** The same input on two to four models or versions, side by side. */
export default function Compare({ product, form, keys }: CompareProps) {
  const { runs } = route.useSearch();
  const navigate = route.useNavigate();
  const client = useQueryClient();
  const nextId = useRef(0);

  const [columns, setColumns] = useState<Column[]>(() =>
    firstColumns(
      (runs?.split(",") ?? []).flatMap((id) => client.getQueryData(executionQuery(id).queryKey) ?? []),
      form,
      keys,
    ).map((column) => ({
      ...column,
      id: nextId.current++,
    })),
  );
  const [ranges, setRanges] = useState<Record<number, CostRange | null>>({});
  const [intents] = useState(() => new Intents());
  const [isStarting, setStarting] = useState(false);
  const [isChecked, check] = useState(false);
  const change = useCallback(
    (id: number, part: Partial<Column>) =>
      setColumns((old) => old.map((column) => (column.id === id ? { ...column, ...part } : column))),
    [],
  );
  const setRange = useCallback(
    (id: number, range: CostRange | null) => setRanges((old) => ({ ...old, [id]: range })),
    [],
  );
  const current = useQueries({
    queries: columns.flatMap(({ run }) => (run === null ? [] : [executionQuery(run)])),
  });
  const active = current.flatMap(({ data }) => (data && isActive(data) ? [data.id] : []));
  const isRunning = active.length > 0;
  const areValuesValid = Object.keys({ ...form.valueErrors, ...form.limitErrors }).length === 0;
  const isReady = areValuesValid && columns.every(({ target }) => target.keyId !== "" && target.model !== "");
  const startAll = async () => {
    check(true);
    if (!isReady || isStarting) return;
    setStarting(true);
    const started = await Promise.all(
      columns.map(async ({ id, target }) => {
        try {
          const request = toExecute({ product, ...form, target });
          const { executionId } = await intents.send(
            // Columns may be alike: each is a run of its own.
            ({ request }, options) => stoa.ai.executeInBackground(request, options),
            { request, id },
          );
          change(id, { run: executionId, error: null });
          return executionId;
        } catch (error) {
          change(id, { run: null, error });
          return null;
        }
      }),
    );
    setStarting(false);
    check(false);
    const ids = started.filter((id) => id !== null);
    void client.invalidateQueries({ queryKey: ["executions"] });
    if (ids.length > 0)
      await navigate({ search: (old) => ({ ...old, runs: ids.join(",") }), resetScroll: false });
  };
  const stopAll = () => {
    for (const id of active) void stoa.ai.executions.cancel(id).then(undefined, () => {});
  };
  useRunKeys({ run: () => !isRunning && void startAll(), stop: stopAll });
  const total = addRanges(columns.map(({ id }) => ranges[id] ?? null));
  const add = () =>
    setColumns((old) => {
      const last = old.at(-1)?.target ?? form.target;
      return [...old, { id: nextId.current++, target: { ...last }, run: null, error: null }];
    });
  return (
    <div className="compare">
      <form className="compare-in" onSubmit={(event) => event.preventDefault()} noValidate>
        <div className="compare-values">
          <VariableFields
            variables={form.variables}
            values={form.values}
            errors={isChecked ? form.valueErrors : {}}
            onChange={form.setValue}
          />
        </div>
        <div className="stack">
          <LimitFields product={product} form={form} errors={{}} hasVersion={false} />
          <button
            type="button"
            className="btn primary run-button"
            disabled={isStarting || isRunning || keys.length === 0}
            onClick={() => void startAll()}
          >
            <PlayIcon />{" "}
            {isStarting ? "Starting" : isRunning ? "Running" : `Run ${columns.length}${amount(total)}`}
          </button>
          {columns.length < MOST_COMPARED && (
            <button type="button" className="btn" onClick={add}>
              <PlusIcon /> Add a model
            </button>
          )}
          {isChecked && !isReady && (
            <p className="ferr" role="alert">
              Complete the input, and choose a key and a model in each column.
            </p>
          )}
          <p className="xs faint desk">
            <span className="kbd">Ctrl Enter</span> runs, <span className="kbd">Esc</span> stops all
          </p>
        </div>
      </form>
      <div className="compare-columns" data-count={columns.length}>
        {columns.map((column) => (
          <CompareColumn
            key={column.id}
            column={column}
            product={product}
            form={form}
            keys={keys}
            isComplete={areValuesValid}
            canRemove={columns.length > 2}
            onTarget={change}
            onRange={setRange}
            onRemove={() => setColumns((old) => old.filter(({ id }) => id !== column.id))}
          />
        ))}
      </div>
    </div>
  );
}

const amount = (total: CostRange | null): string =>
  total === null ? "" : total.high === 0 ? ", free" : `, about ${formatCost(total.high)}`;

/** Those of the runs in the address; else the form's model, and beside it one to be chosen. */
function firstColumns(runs: ExecutionDetail[], form: PromptForm, keys: KeyChoice[]): Omit<Column, "id">[] {
  const columns = runs.slice(0, MOST_COMPARED).map((run) => {
    const key = keys.find(({ provider }) => provider === run.provider);
    const target = { keyId: key?.id ?? "", model: run.model ?? "", version: run.productVersion };
    return { target, run: run.id, error: null };
  });
  const other = keys.find(({ id }) => id !== form.target.keyId && id !== "sandbox");
  const second: Target = other ? { ...form.target, keyId: other.id, model: "" } : { ...form.target };
  const blank = [form.target, second].map((target) => ({ target, run: null, error: null }));
  return [...columns, ...blank.slice(columns.length)];
}

interface ColumnProps {
  column: Column;
  product: ProductDetail;
  form: PromptForm;
  keys: KeyChoice[];
  isComplete: boolean;
  canRemove: boolean;
  onTarget: (id: number, part: Partial<Column>) => void;
  onRange: (id: number, range: CostRange | null) => void;
  onRemove: () => void;
}

function CompareColumn(props: ColumnProps) {
  const { column, product, form, keys, isComplete, canRemove, onTarget, onRange, onRemove } = props;
  const { id, target, run, error } = column;
  const changeTarget = useCallback(
    (part: Partial<Target>) => onTarget(id, { target: { ...target, ...part } }),
    [id, target, onTarget],
  );
  const key = keys.find((one) => one.id === target.keyId);
  const models = useModels(key?.provider);
  const estimate = useEstimate(
    toExecute({ product, ...form, target }),
    isComplete && target.keyId !== "" && target.model !== "",
  );
  const range = estimate.data ? rangeOf(estimate.data) : null;
  const [low, high] = [range?.low, range?.high];
  useEffect(
    () => onRange(id, low === undefined || high === undefined ? null : { low, high }),
    [id, low, high, onRange],
  );
  const { data: execution, error: unread } = useQuery({
    ...executionQuery(run ?? ""),
    enabled: run !== null,
  });
  const followed = useFollowedRun(run ?? undefined, execution !== undefined && isActive(execution));
  useEndOfRun(execution?.id, execution?.status);
  const errors = fieldErrors(error);
  return (
    <section className="compare-column" aria-label={target.model || "Model"}>
      <div className="compare-head">
        <TargetFields
          product={product}
          keys={keys}
          target={target}
          onChange={changeTarget}
          errors={errors}
          scoreCard={product.scoreCard}
        />
        <VersionField
          product={product}
          value={target.version}
          error={errors["options.version"]}
          onChange={(version) => changeTarget({ version })}
        />
        <EstimateBox
          estimate={estimate.data}
          error={estimate.error}
          models={models}
          isAnswerLimited={form.limits.maxTokens !== ""}
        />
        {canRemove && (
          <button type="button" className="btn quiet s" onClick={onRemove}>
            <CloseIcon /> Remove this column
          </button>
        )}
      </div>
      {error !== null && error !== undefined && (
        <StartErrorStrip error={error} provider={key?.provider ?? null} last4={key?.last4} />
      )}
      {unread && <ErrorStrip error={unread} />}
      {run !== null && execution && (
        <>
          <RunMeter
            execution={execution}
            followed={followed}
            range={range}
            promptTokens={estimate.data?.calls[0]?.promptTokens.min ?? 0}
          />
          <RunOutput execution={execution} followed={followed} />
        </>
      )}
    </section>
  );
}
