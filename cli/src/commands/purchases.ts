import type { Purchase, PurchaseDetail } from "@stoa/sdk";
import type { Command } from "commander";
import { amountOf, time } from "../format.ts";
import type { Column } from "../output.ts";
import { listCommand, objectCommand } from "../resource.ts";

const listColumns: Column<Purchase>[] = [
  { field: "orderId", title: "Order" },
  { field: "product.id", title: "Product" },
  { field: "product.title", title: "Title" },
  { field: "status", title: "Status" },
  { field: "amount", title: "Paid", format: amountOf },
  { field: "createdAt", title: "Bought", format: ({ createdAt }) => time(createdAt) },
];

const columns: Column<PurchaseDetail>[] = [
  { field: "orderId", title: "order" },
  { field: "status" },
  { field: "product.title", title: "product" },
  { field: "product.id", title: "product id" },
  { field: "amount", title: "paid", format: amountOf },
  { field: "createdAt", title: "bought", format: ({ createdAt }) => time(createdAt) },
  { field: "receipt.number", title: "receipt" },
  { field: "receipt.pdf", title: "receipt as PDF" },
  { field: "downloadUrl", title: "download" },
  { field: "refundable", title: "refund", format: refundRule },
];

interface PurchaseOptions {
  status?: string;
  product?: string;
}

export default function define(command: Command): void {
  listCommand<Purchase, PurchaseOptions>(command, {
    name: "list",
    description: "List what you bought",
    options: (list) =>
      list
        .option("--status <status>", "completed, refunded, … or all")
        .option("--product <id>", "orders of one product"),
    examples: ["stoa purchases list", "stoa purchases list --status all --json --fields orderId,status"],
    columns: listColumns,
    open: (stoa, page, { status, product }) => stoa.purchases.list({ ...page, status, productId: product }),
  });
  objectCommand<PurchaseDetail>(command, {
    name: "get <order>",
    description: "Show an order with its receipt and refund rule",
    examples: ["stoa purchases get ord_…"],
    columns,
    call: (stoa, _options, [order = ""]) => stoa.purchases.get(order),
  });
}

function refundRule({ refundable }: PurchaseDetail): string {
  if (refundable.reasonIfNot) return `no: ${refundable.reasonIfNot.replaceAll("_", " ")}`;
  const how = refundable.approval === "instant" ? "at once" : "if the seller agrees";
  return `${how}, until ${time(refundable.until)}`;
}
