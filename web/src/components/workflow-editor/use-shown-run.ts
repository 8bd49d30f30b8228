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

/** The run of the address, else the latest one, followed while it is active. */
export function useShownRun(productId: string, steps: EditedStep[]) {
  const { run: chosen } = route.useSearch();
  const navigate = route.useNavigate();
  const { data: runs } = useQuery(workflowRunsQuery(productId));
  const id = chosen ?? runs?.[0]?.id;
  const { data: execution } = useQuery({ ...executionQuery(id ?? ""), enabled: id !== undefined });
  const { data: rows } = useQuery({ ...stepsQuery(id ?? ""), enabled: id !== undefined });
  useFollowedRun(id, execution !== undefined && isActive(execution));
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
