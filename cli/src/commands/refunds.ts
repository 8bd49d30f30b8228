import type { Refund } from "@stoa/sdk";
import type { Command } from "commander";
import { amountOf, time } from "../format.ts";
import type { Column } from "../output.ts";
import { listCommand, objectCommand } from "../resource.ts";

export const refundColumns: Column<Refund>[] = [
  { field: "id", title: "Refund" },
  { field: "orderId", title: "Order" },
  { field: "product.title", title: "Product" },
  { field: "status", title: "Status" },
  { field: "amount", title: "Amount", format: amountOf },
  { field: "reason", title: "Reason" },
  { field: "createdAt", title: "Requested", format: ({ createdAt }) => time(createdAt) },
];

export default function define(command: Command): void {
  listCommand<Refund, { role?: string; status?: string; product?: string }>(command, {
    name: "list",
    description: "List refunds of your purchases and sales",
    options: (list) =>
      list
        .option("--role <role>", "buyer or seller")
        .option("--status <status>", "pending, succeeded, …")
        .option("--product <id>", "of one product"),
    examples: ["stoa refunds list --role seller --status pending"],
    columns: refundColumns,
    open: (stoa, page, { role, status, product }) =>
      stoa.refunds.list({ ...page, role, status, productId: product }),
  });
  objectCommand<Refund>(command, {
    name: "get <refund>",
    description: "Show a refund",
    examples: ["stoa refunds get ref_…"],
    columns: refundColumns,
    call: (stoa, _options, [refund = ""]) => stoa.refunds.get(refund),
  });
  objectCommand<Refund>(command, {
    name: "approve <refund>",
    description: "Give a buyer the money back",
    examples: ["stoa refunds approve ref_…"],
    columns: refundColumns,
    call: (stoa, _options, [refund = ""]) => stoa.refunds.approve(refund),
  });
  objectCommand<Refund, { reason: string }>(command, {
    name: "reject <refund>",
    description: "Refuse a refund",
    options: (reject) => reject.requiredOption("--reason <text>", "what the buyer reads"),
    examples: ['stoa refunds reject ref_… --reason "It was used for a month."'],
    columns: refundColumns,
    call: (stoa, { reason }, [refund = ""]) => stoa.refunds.reject(refund, { reason }),
  });
  objectCommand<Refund>(command, {
    name: "cancel <refund>",
    description: "Take back your request",
    examples: ["stoa refunds cancel ref_…"],
    columns: refundColumns,
    call: (stoa, _options, [refund = ""]) => stoa.refunds.cancel(refund),
  });
}
