import type { CreateDiscountCode, DiscountCode, UpdateDiscountCode } from "@stoa/sdk";
import type { Command } from "commander";
import { decimal, wholeNumber } from "../command.ts";
import { type BodyOptions, bodyOptions, readBody } from "../fields.ts";
import { money, time } from "../format.ts";
import type { Column } from "../output.ts";
import { listCommand, objectCommand } from "../resource.ts";

const columns: Column<DiscountCode>[] = [
  { field: "id", title: "Discount" },
  { field: "code", title: "Code" },
  { field: "percentOff", title: "Off", format: reductionOf },
  { field: "productId", title: "Product", format: ({ productId }) => productId ?? "all" },
  { field: "redemptions", title: "Used" },
  { field: "maxRedemptions", title: "At most" },
  { field: "endsAt", title: "Ends", format: ({ endsAt }) => time(endsAt) },
];

interface DiscountOptions extends BodyOptions {
  percent?: number;
  amount?: number;
  currency?: string;
  product?: string;
  ends?: string;
  max?: number;
}

const discountOptions = (command: Command) =>
  bodyOptions(
    command
      .option("--percent <n>", "percent off", decimal)
      .option("--amount <n>", "amount off, with --currency", decimal)
      .option("--currency <code>", "such as USD")
      .option("--product <id>", "only for one product")
      .option("--ends <time>", "such as 2026-12-31T23:59:59Z")
      .option("--max <n>", "how often it can be used", wholeNumber(1)),
  );

const discountBody = ({ percent, amount, currency, product, ends, max, ...body }: DiscountOptions) =>
  readBody<UpdateDiscountCode>(body, {
    ...(percent !== undefined && { percentOff: percent }),
    ...(amount !== undefined && { amountOff: amount }),
    ...(currency !== undefined && { currency }),
    ...(product !== undefined && { productId: product }),
    ...(ends !== undefined && { endsAt: ends }),
    ...(max !== undefined && { maxRedemptions: max }),
  } as Partial<UpdateDiscountCode>);

export default function define(command: Command): void {
  listCommand<DiscountCode, { status?: string; product?: string }>(command, {
    name: "list",
    description: "List your discount codes",
    options: (list) =>
      list
        .option("--status <status>", "active, scheduled, ended or used_up")
        .option("--product <id>", "that apply to this product, also those for all products"),
    examples: ["stoa discounts list", "stoa discounts list --status active"],
    columns,
    open: (stoa, page, { status, product }) =>
      stoa.discountCodes.list({ ...page, status, productId: product }),
  });
  objectCommand<DiscountCode, DiscountOptions>(command, {
    name: "create <code>",
    description: "Create a discount code",
    options: discountOptions,
    examples: ["stoa discounts create SUMMER --percent 20 --max 100"],
    columns,
    call: async (stoa, options, [code = ""]) =>
      stoa.discountCodes.create({ ...(await discountBody(options)), code } as CreateDiscountCode),
  });
  objectCommand<DiscountCode, DiscountOptions>(command, {
    name: "update <discount>",
    description: "Change a discount code",
    options: discountOptions,
    examples: ["stoa discounts update dc_… --max 200"],
    columns,
    call: async (stoa, options, [discount = ""]) =>
      stoa.discountCodes.update(discount, await discountBody(options)),
  });
  objectCommand(command, {
    name: "delete <discount>",
    description: "Delete a discount code",
    examples: ["stoa discounts delete dc_…"],
    columns: [],
    call: (stoa, _options, [discount = ""]) => stoa.discountCodes.delete(discount),
    message: () => "Deleted.",
  });
}

function reductionOf({ percentOff, amountOff, currency }: DiscountCode): string {
  return percentOff === null ? money(amountOff ?? 0, currency ?? "USD") : `${percentOff} %`;
}
