import type { Sale, SaleRuns } from "@stoa/sdk";
import type { Command } from "commander";
import { amountOf, money, time } from "../format.ts";
import { listCommand, objectCommand } from "../resource.ts";

interface ListSales {
  status?: string;
  product?: string;
  from?: string;
  to?: string;
  referred?: true;
  referralCode?: string;
}

export default function define(command: Command): void {
  listCommand<Sale, ListSales>(command, {
    name: "list",
    description: "List your sales with fees and earnings",
    options: (list) =>
      list
        .option("--status <status>", "completed, refunded, … or all")
        .option("--product <id>", "of one product")
        .option("--from <time>", "from this time on")
        .option("--to <time>", "before this time")
        .option("--referred", "only those with a referral code")
        .option("--referral-code <code>", "only those with this referral code"),
    examples: ["stoa sales list --from 2026-11-01T00:00:00Z", "stoa sales list --referred"],
    columns: [
      { field: "orderId", title: "Order" },
      { field: "product.title", title: "Product" },
      { field: "buyer.name", title: "Buyer" },
      { field: "status", title: "Status" },
      { field: "amount", title: "Paid", format: amountOf },
      { field: "earnings", title: "Earned", format: ({ earnings, currency }) => money(earnings, currency) },
      { field: "createdAt", title: "Sold", format: ({ createdAt }) => time(createdAt) },
    ],
    open: (stoa, page, { status, product, from, to, referred, referralCode }) =>
      stoa.sales.list({ ...page, status, productId: product, from, to, referred, referralCode }),
  });
  objectCommand<SaleRuns>(command, {
    name: "runs <order>",
    description: "Show how often a buyer ran your product since the purchase",
    examples: ["stoa sales runs ord_…"],
    columns: [
      { field: "total", title: "runs" },
      { field: "completed" },
      { field: "failed" },
      { field: "canceled" },
      { field: "lastAt", title: "last", format: ({ lastAt }) => time(lastAt) },
    ],
    call: (stoa, _options, [order = ""]) => stoa.sales.runs(order),
  });
}
