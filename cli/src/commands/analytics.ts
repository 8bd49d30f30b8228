import type {
  AnalyticsEntriesQuery,
  AnalyticsEntry,
  AnalyticsFunnel,
  AnalyticsFunnelQuery,
  Stoa,
} from "@stoa/sdk";
import type { Command } from "commander";
import { action, example } from "../command.ts";
import { amountOf, money, percent, time } from "../format.ts";
import { listCommand, objectCommand } from "../resource.ts";

interface DayOptions {
  period?: AnalyticsFunnelQuery["period"];
  from?: string;
  to?: string;
}

interface AnalyticsOptions extends DayOptions {
  currency?: string;
  csv?: string | true;
}

const dayOptions = (command: Command): Command =>
  command
    .option("--period <period>", "day, week, month or year until today")
    .option("--from <date>", "the first day, such as 2026-11-01")
    .option("--to <date>", "the last day");

const daysOf = ({ period, from, to }: DayOptions) => ({ period, startDate: from, endDate: to });

type Kind = "products" | "revenue" | "customers";

interface Report {
  currency: string;
  startDate: string;
  endDate: string;
  summary: Record<string, number>;
}

const descriptions: Record<Kind, string> = {
  products: "Show sales, views and the best products",
  revenue: "Show revenue, fees, refunds and what you keep",
  customers: "Show new and returning customers",
};

export default function define(command: Command): void {
  for (const [kind, description] of Object.entries(descriptions) as [Kind, string][]) {
    const report = command.command(kind).description(description);
    dayOptions(report)
      .option("--currency <code>", "such as USD (default: that of most sales)")
      .option("--csv [file]", "the days as CSV, into a file or to standard output")
      .action(
        action<AnalyticsOptions>(async (cli, { csv, ...options }) => {
          const stoa = await cli.stoa();
          const query = { ...daysOf(options), currency: options.currency };
          if (csv !== undefined) {
            const { saveResponse } = await import("../save-response.ts");
            const path = csv === true ? undefined : csv;
            return saveResponse(cli, await exportOf(stoa, kind, query), { path, label: kind });
          }
          const result = (await stoa.analytics[kind](query)) as unknown as Report;
          if (cli.output.isJson) return cli.output.object(result, []);
          cli.output.line(
            cli.output.style("bold", `${result.startDate} to ${result.endDate}, ${result.currency}`),
          );
          for (const [name, value] of Object.entries(result.summary))
            cli.output.line(`${toWords(name).padEnd(28)}${toValue(name, value, result.currency)}`);
        }),
      );
    example(report, `stoa analytics ${kind} --period month`, `stoa analytics ${kind} --csv ${kind}.csv`);
  }
  objectCommand<AnalyticsFunnel, DayOptions>(command, {
    name: "funnel",
    description: "Show views, purchases, runs and refunds",
    options: dayOptions,
    examples: ["stoa analytics funnel --period month"],
    columns: [
      { field: "views" },
      { field: "purchases" },
      {
        field: "viewsToPurchases",
        title: "of views",
        format: ({ viewsToPurchases }) => percent(viewsToPurchases),
      },
      { field: "ran", title: "purchases that ran" },
      { field: "refunded", title: "purchases refunded" },
      { field: "runs" },
    ],
    call: (stoa, options) => stoa.analytics.funnel(daysOf(options)),
  });
  listCommand<AnalyticsEntry, EntriesOptions>(command, {
    name: "entries",
    description: "List the ledger entries behind a sum of `revenue`",
    options: (list) =>
      dayOptions(list)
        .option("--figure <name>", "grossRevenue, refunds, tax, … (default: netRevenue)")
        .option("--currency <code>", "such as USD (default: that of most sales)"),
    examples: ["stoa analytics entries --figure refunds --period month"],
    columns: [
      { field: "kind", title: "Entry" },
      { field: "account", title: "Account" },
      { field: "amount", title: "Amount", format: amountOf },
      { field: "orderId", title: "Order" },
      { field: "product.title", title: "Product" },
      { field: "occurredAt", title: "Booked", format: ({ occurredAt }) => time(occurredAt) },
    ],
    open: (stoa, page, { figure, currency, ...days }) =>
      stoa.analytics.entries({ ...page, ...daysOf(days), figure, currency }),
  });
}

interface EntriesOptions extends DayOptions {
  figure?: AnalyticsEntriesQuery["figure"];
  currency?: string;
}

function exportOf(stoa: Stoa, kind: Kind, query: object): PromiseLike<Response> {
  if (kind === "products") return stoa.analytics.exportProducts(query);
  return kind === "revenue" ? stoa.analytics.exportRevenue(query) : stoa.analytics.exportCustomers(query);
}

/** `avgOrderValue` as "avg order value". */
const toWords = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

const COUNTS = /^(sales|totalSales|.*Customers)$/;

function toValue(name: string, value: number, currency: string): string {
  if (/Rate$/.test(name)) return `${(value * 100).toFixed(1)} %`;
  return COUNTS.test(name) ? String(value) : money(value, currency);
}
