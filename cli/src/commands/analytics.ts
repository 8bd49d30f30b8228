import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import type { Stoa } from "@stoa/sdk";
import type { Command } from "commander";
import { action, example } from "../command.ts";
import { UsageError } from "../errors.ts";
import { money } from "../format.ts";

interface AnalyticsOptions {
  period?: string;
  from?: string;
  to?: string;
  currency?: string;
  csv?: string | true;
}

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
    const report = command
      .command(kind)
      .description(description)
      .option("--period <period>", "day, week, month or year until today")
      .option("--from <date>", "the first day, such as 2026-11-01")
      .option("--to <date>", "the last day")
      .option("--currency <code>", "such as USD (default: that of most sales)")
      .option("--csv [file]", "the days as CSV, into a file or to standard output")
      .action(
        action<AnalyticsOptions>(async (cli, { csv, ...options }) => {
          const stoa = await cli.stoa();
          const query = {
            period: options.period,
            startDate: options.from,
            endDate: options.to,
            currency: options.currency,
          };
          if (csv !== undefined) return writeCsv(await exportOf(stoa, kind, query), csv);
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
}

function exportOf(stoa: Stoa, kind: Kind, query: object): PromiseLike<Response> {
  if (kind === "products") return stoa.analytics.exportProducts(query);
  return kind === "revenue" ? stoa.analytics.exportRevenue(query) : stoa.analytics.exportCustomers(query);
}

async function writeCsv({ body }: Response, file: string | true): Promise<void> {
  if (!body) return;
  const content = Readable.fromWeb(body as ReadableStream);
  if (file === true) return pipeline(content, process.stdout, { end: false });
  try {
    await pipeline(content, createWriteStream(file));
  } catch (error) {
    throw new UsageError(`Cannot write ${file}: ${(error as Error).message}`);
  }
}

/** `avgOrderValue` as "avg order value". */
const toWords = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

const COUNTS = /^(sales|totalSales|.*Customers)$/;

function toValue(name: string, value: number, currency: string): string {
  if (/Rate$/.test(name)) return `${(value * 100).toFixed(1)} %`;
  return COUNTS.test(name) ? String(value) : money(value, currency);
}
