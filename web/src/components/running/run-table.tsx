import type { Execution } from "@stoa/sdk";
import { Link } from "@tanstack/react-router";
import { formatDuration } from "../../lib/duration.ts";
import { formatCost, formatCount } from "../../lib/format.ts";
import { Time } from "../time.tsx";
import { RunStatus } from "./run-output.tsx";

interface RunTableProps {
  runs: Execution[];
  /** By product id; absent: all are of one product. */
  titles?: Map<string, string> | undefined;
  /** The chosen ones, for a comparison. */
  chosen?: string[];
  onChoose?: (id: string) => void;
}

export function RunTable({ runs, titles, chosen = [], onChoose }: RunTableProps) {
  return (
    <table className="run-table">
      <thead>
        <tr>
          {onChoose && (
            <th>
              <span className="hidden">Compare</span>
            </th>
          )}
          <th>Status</th>
          <th>{titles ? "Product" : "Model"}</th>
          <th className="desk">Version</th>
          <th className="r">Cost</th>
          <th className="r desk">Tokens</th>
          <th className="r desk">Time</th>
          <th className="r">Started</th>
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <tr key={run.id}>
            {onChoose && (
              <td>
                {run.type === "PROMPT" && (
                  <input
                    type="checkbox"
                    className="check"
                    aria-label={`Compare the run of ${run.model ?? "a model"}, ${run.createdAt}`}
                    checked={chosen.includes(run.id)}
                    onChange={() => onChoose(run.id)}
                  />
                )}
              </td>
            )}
            <td>
              <RunStatus status={run.status} />
            </td>
            <td className="name">
              <RunLink run={run} label={titles ? (titles.get(run.productId) ?? "Product") : nameOf(run)} />
              {titles && <div className="xs soft cut">{nameOf(run)}</div>}
            </td>
            <td className="soft desk">{run.productVersion}</td>
            <td className="r">{costLabel(run)}</td>
            <td className="r soft desk">{run.usage ? formatCount(run.usage.totalTokens) : "–"}</td>
            <td className="r soft nowrap desk">
              {run.duration === null ? "–" : formatDuration(run.duration)}
            </td>
            <td className="r soft nowrap">
              <Time iso={run.createdAt} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const RunLink = ({ run, label }: { run: Execution; label: string }) => (
  <Link to="/runs/$executionId" params={{ executionId: run.id }} className="m" dir="auto">
    {label}
  </Link>
);

export const nameOf = ({ type, model }: Pick<Execution, "type" | "model">): string =>
  model ?? (type === "WORKFLOW" ? "Workflow" : "Prompt");

export function costLabel({ usage }: Pick<Execution, "usage">): string {
  if (!usage) return "–";
  if (!usage.costKnown) return "unknown";
  return usage.estimatedCost === 0 ? "free" : formatCost(usage.estimatedCost);
}
