import type { WorkflowStep } from "@stoa/sdk";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useCallback, useMemo, useRef } from "react";
import { useEndOfRun, useFollowedRun } from "../../lib/follow-run.ts";
import type { DefinedStep } from "../../lib/workflow-definition.ts";
import { type EditedStep, needsOf } from "../../lib/workflow-document.ts";
import { executionQuery, stepsQuery } from "../../queries/running.ts";
import { workflowRunsQuery } from "../../queries/workflow-editor.ts";
import { isActive } from "../running/run-output.tsx";
import { showSteps } from "../running/step-state.ts";
import type { ShownRun } from "./editor-context.ts";

const route = getRouteApi("/studio/workflows/$productId");
const NO_STEPS: WorkflowStep[] = [];
const POLL_MS = 5_000;
const SOON_MS = 500;
const isCompleted = ({ status }: WorkflowStep): boolean => status === "completed";

/** The run of the address, else the latest one, followed while it is active. */
export function useShownRun(productId: string, steps: EditedStep[]) {
  const { run: chosen } = route.useSearch();
  const navigate = route.useNavigate();
  const { data: runs } = useQuery(workflowRunsQuery(productId));
  const id = chosen ?? runs?.[0]?.id;
  const { data: execution } = useQuery({
    ...executionQuery(id ?? ""),
    enabled: id !== undefined,
    // Beside the events, in case the last one is missed.
    refetchInterval: ({ state }) => (state.data && isActive(state.data) ? POLL_MS : false),
  });
  const isRunning = execution !== undefined && isActive(execution);
  const { data: rows } = useQuery({
    ...stepsQuery(id ?? ""),
    enabled: id !== undefined,
    // Both are read at once: the steps may be those of a moment before the run ended.
    refetchInterval: ({ state }) =>
      execution && !isRunning && state.dataUpdateCount < 3 && !state.data?.some(isCompleted)
        ? SOON_MS
        : false,
  });
  useFollowedRun(id, isRunning);
  useEndOfRun(id, execution?.status);
  const seen = useRef<Readonly<Record<string, unknown>>>({});
  const run = useMemo<ShownRun | null>(() => {
    if (!execution) return null;
    const defined = steps.map((step) => ({ ...step, needs: needsOf(step) }) as unknown as DefinedStep);
    const completed =
      rows?.filter(({ index, status }) => index === null && status === "completed") ?? NO_STEPS;
    seen.current = {
      ...seen.current,
      ...Object.fromEntries(completed.map(({ stepId, output }) => [stepId, output])),
    };
    return { execution, steps: showSteps(defined, rows ?? NO_STEPS), outputs: seen.current };
  }, [execution, rows, steps]);
  const showRun = useCallback(
    (executionId: string) =>
      void navigate({
        search: (old) => ({ ...old, run: executionId }),
        replace: true,
        resetScroll: false,
      }),
    [navigate],
  );
  return { run, showRun };
}
