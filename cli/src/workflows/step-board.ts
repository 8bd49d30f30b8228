import type { WorkflowStep } from "@stoa/sdk";
import type { Cli } from "../cli.ts";
import { type Style, withoutControls } from "../output.ts";
import { describeCost } from "../run/cost.ts";
import { cut } from "../table.ts";

/** The data of an event of a step, or of an item of a map. */
export interface StepChange {
  stepId: string;
  /** Of a map's item; not set: the step itself. */
  index?: number;
  status: string;
  attempt: number;
  items?: number;
  error?: { code: string; message: string };
}

interface Line {
  status: string;
  attempt: number;
  items: number | undefined;
  itemsEnded: number;
  /** Cost and output, or the error. */
  facts: string;
}

const marks: Record<string, { mark: string; style: Style }> = {
  running: { mark: "●", style: "yellow" },
  waiting: { mark: "?", style: "cyan" },
  completed: { mark: "✓", style: "green" },
  failed: { mark: "✗", style: "red" },
};
const OTHER = { mark: "–", style: "dim" as Style };
const ENDED: ReadonlySet<string> = new Set(["completed", "skipped", "failed", "canceled"]);
const MAX_OUTPUT = 60;

export const isItemChange = ({ index }: StepChange): boolean => index !== undefined;

/** One line a step on standard error: redrawn in a terminal, else one more at each change. */
export class StepBoard {
  readonly #output: Cli["output"];
  readonly #lines = new Map<string, Line>();
  /** Lines on the screen that the next drawing replaces. */
  #drawn = 0;

  constructor({ output }: Cli) {
    this.#output = output;
  }

  apply(change: StepChange): void {
    const line = this.#lineOf(change.stepId);
    const isItem = isItemChange(change);
    if (isItem) {
      if (ENDED.has(change.status)) line.itemsEnded++;
    } else {
      line.status = change.status;
      line.attempt = change.attempt;
      line.items = change.items ?? line.items;
      line.facts = change.error ? `${change.error.message} (${change.error.code})` : "";
    }
    this.#show(change.stepId, line, !isItem);
  }

  /** Adds cost and output of a step that ended. */
  complete({ stepId, usage, output }: WorkflowStep): void {
    const line = this.#lineOf(stepId);
    const cost = usage && (usage.costKnown ? describeCost(usage.estimatedCost) : "cost unknown");
    line.status = "completed";
    line.facts = [cost, output === null ? null : shorten(output)].filter((fact) => fact !== null).join(", ");
    this.#show(stepId, line, true);
  }

  /** Leaves the lines as they are: a question comes below. */
  release(): void {
    this.#drawn = 0;
  }

  #lineOf(stepId: string): Line {
    const line = this.#lines.get(stepId) ?? {
      ...{ status: "running", attempt: 1, items: undefined, itemsEnded: 0, facts: "" },
    };
    this.#lines.set(stepId, line);
    return line;
  }

  #show(stepId: string, line: Line, isOwnChange: boolean): void {
    if (!process.stderr.isTTY) {
      if (isOwnChange) this.#output.report(this.#render(stepId, line));
      return;
    }
    const { columns = 80, rows = 24 } = process.stderr;
    const shown = [...this.#lines].slice(-(rows - 2)).map(([id, each]) => this.#render(id, each, columns));
    const back = this.#drawn > 0 ? `\x1b[${this.#drawn}A\x1b[J` : "";
    process.stderr.write(`${back}${shown.map((text) => `${text}\n`).join("")}`);
    this.#drawn = shown.length;
  }

  #render(stepId: string, { status, attempt, items, itemsEnded, facts }: Line, columns?: number): string {
    const { mark, style } = marks[status] ?? OTHER;
    const parts = [stepId, status];
    if (attempt > 1) parts.push(`attempt ${attempt}`);
    if (items !== undefined && !ENDED.has(status)) parts.push(`${itemsEnded} of ${items}`);
    if (facts !== "") parts.push(facts);
    const text = withoutControls(parts.join("  ")).replace(/\s*\n\s*/g, " ");
    return `${this.#output.style(style, mark, process.stderr)} ${columns ? cut(text, columns - 3).text : text}`;
  }
}

function shorten(output: unknown): string {
  const line =
    (typeof output === "string" ? output.replace(/\s+/g, " ").trim() : JSON.stringify(output)) ?? "";
  return cut(line, MAX_OUTPUT).text;
}
