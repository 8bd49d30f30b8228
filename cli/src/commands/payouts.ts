import type { Balance, CreatePayout, Payout, PayoutAccount } from "@stoa/sdk";
import type { Command } from "commander";
import { type BodyOptions, bodyOptions, readBody } from "../fields.ts";
import { amountOf, money, time } from "../format.ts";
import type { Column } from "../output.ts";
import { listCommand, objectCommand } from "../resource.ts";

const columns: Column<Payout>[] = [
  { field: "id", title: "Payout" },
  { field: "status", title: "Status" },
  { field: "amount", title: "Amount", format: amountOf },
  { field: "createdAt", title: "Started", format: ({ createdAt }) => time(createdAt) },
  { field: "completedAt", title: "Completed", format: ({ completedAt }) => time(completedAt) },
];

export default function define(command: Command): void {
  listCommand<Payout, { status?: string }>(command, {
    name: "list",
    description: "List your payouts",
    options: (list) =>
      list.option("--status <status>", "pending, in_transit, completed, failed, returned or all"),
    examples: ["stoa payouts list"],
    columns,
    open: (stoa, page, { status }) => stoa.payouts.list({ ...page, status }),
  });
  objectCommand<Payout>(command, {
    name: "get <payout>",
    description: "Show a payout",
    examples: ["stoa payouts get po_…"],
    columns,
    call: (stoa, _options, [payout = ""]) => stoa.payouts.get(payout),
  });
  objectCommand<Payout, BodyOptions>(command, {
    name: "create",
    description: "Pay out your available balance (needs a session: log in on the web for it)",
    options: bodyOptions,
    examples: ["stoa payouts create -f amount=50 -f currency=USD"],
    columns,
    call: async (stoa, options) => stoa.payouts.create(await readBody<CreatePayout>(options)),
  });
  listCommand<Balance>(command, {
    name: "balance",
    description: "Show what you earned, by currency",
    examples: ["stoa payouts balance"],
    columns: [
      { field: "currency", title: "Currency" },
      {
        field: "available",
        title: "Available",
        format: ({ available, currency }) => money(available, currency),
      },
      { field: "pending", title: "Pending", format: ({ pending, currency }) => money(pending, currency) },
      {
        field: "inTransit",
        title: "In transit",
        format: ({ inTransit, currency }) => money(inTransit, currency),
      },
      {
        field: "minimum",
        title: "Least payout",
        format: ({ minimum, currency }) => money(minimum, currency),
      },
    ],
    open: (stoa, page) => stoa.balance.get(page),
  });
  objectCommand<PayoutAccount>(command, {
    name: "account",
    description: "Show where payouts go",
    examples: ["stoa payouts account"],
    columns: [{ field: "account" }, { field: "payoutsEnabled", title: "payouts enabled" }],
    call: (stoa) => stoa.payouts.account.get(),
  });
}
