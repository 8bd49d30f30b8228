import type { Execution, ExecutionDetail } from "@stoa/sdk";
import type { Command } from "commander";
import { example } from "../command.ts";
import { time } from "../format.ts";
import type { Column } from "../output.ts";
import { listCommand, objectCommand } from "../resource.ts";
import { describeCost } from "../run/cost.ts";

interface ListOptions {
  status?: string;
  product?: string;
  type?: string;
}

const costColumn: Column<Execution> = {
  field: "usage.estimatedCost",
  title: "Cost",
  format: ({ usage }) => usage && (usage.costKnown ? describeCost(usage.estimatedCost) : "unknown"),
};

const columns: Column<Execution>[] = [
  { field: "id", title: "Execution" },
  { field: "type", title: "Type" },
  { field: "status", title: "Status" },
  { field: "productId", title: "Product" },
  { field: "model", title: "Model" },
  costColumn,
  { field: "createdAt", title: "Started", format: ({ createdAt }) => time(createdAt) },
];

const detailColumns: Column<ExecutionDetail>[] = [
  ...columns.map((column) => ({ ...column, title: column.title?.toLowerCase() ?? column.field })),
  { field: "duration", title: "seconds" },
  { field: "error.message", title: "error" },
  { field: "variables", format: ({ variables }) => variables },
  { field: "output" },
];

export default function define(command: Command): void {
  listCommand<Execution, ListOptions>(command, {
    name: "list",
    description: "List your runs, newest first",
    options: (list) =>
      list
        .option("--status <status>", "queued, running, waiting, completed, failed or canceled")
        .option("--type <type>", "prompt or workflow")
        .option("--product <product>", "only runs of the product with this id"),
    examples: ["stoa executions list --status failed"],
    columns,
    open: (stoa, page, { status, type, product }) =>
      stoa.ai.executions.list({ ...page, status, type, productId: product }),
  });
  objectCommand<ExecutionDetail>(command, {
    name: "get <execution>",
    description: "Show a run with its input and output",
    examples: ["stoa executions get exec_…", "stoa executions get exec_… --json --fields output"],
    columns: detailColumns,
    call: async (stoa, _options, [id = ""]) => stoa.ai.executions.get(id),
  });
  objectCommand<Execution>(command, {
    name: "cancel <execution>",
    description: "Cancel a run",
    examples: ["stoa executions cancel exec_…"],
    columns,
    call: async (stoa, _options, [id = ""]) => stoa.ai.executions.cancel(id),
  });
  example(command, "stoa executions list", "stoa executions get exec_…");
}
