import type { Balance, CreatePayout, Maturity, Payout, PayoutAccount, PayoutItem } from "@stoa/sdk";
import type { Command } from "commander";
import { action, example } from "../command.ts";
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
  listCommand<Maturity>(command, {
    name: "maturities",
    description: "List what becomes available on which day",
    examples: ["stoa payouts maturities"],
    columns: [
      { field: "date", title: "Day" },
      { field: "amount", title: "Amount", format: amountOf },
      { field: "sales", title: "Sales" },
    ],
    open: (stoa, page) => stoa.balance.maturities(page),
  });
  listCommand<PayoutItem>(command, {
    name: "items <payout>",
    description: "List the ledger entries of a payout",
    examples: ["stoa payouts items po_…"],
    columns: [
      { field: "kind", title: "Entry" },
      { field: "orderId", title: "Order" },
      { field: "product.title", title: "Product" },
      { field: "amount", title: "Amount", format: amountOf },
      { field: "occurredAt", title: "Booked", format: ({ occurredAt }) => time(occurredAt) },
    ],
    open: (stoa, page, _options, [payout = ""]) => stoa.payouts.items(payout, page),
  });
  defineStatement(command);
  objectCommand<PayoutAccount>(command, {
    name: "account",
    description: "Show where payouts go",
    examples: ["stoa payouts account"],
    columns: [{ field: "account" }, { field: "payoutsEnabled", title: "payouts enabled" }],
    call: (stoa) => stoa.payouts.account.get(),
  });
}

function defineStatement(payouts: Command): void {
  const statement = payouts
    .command("statement")
    .description("Download the statement of a payout")
    .argument("<payout>", "the payout's id")
    .option("--csv [file]", "a line for each ledger entry, into a file or to standard output")
    .option("--pdf <file>", "a page to print, into a file")
    .action(
      action<{ csv?: string | true; pdf?: string }>(async (cli, { csv = true, pdf }, id: string) => {
        const { saveResponse } = await import("../save-response.ts");
        const stoa = await cli.stoa();
        const response = await stoa.payouts.statement(id, { format: pdf === undefined ? "csv" : "pdf" });
        await saveResponse(cli, response, {
          path: pdf ?? (csv === true ? undefined : csv),
          label: "statement",
        });
      }),
    );
  example(statement, "stoa payouts statement po_… --pdf statement.pdf");
}
