import { setTimeout as sleep } from "node:timers/promises";
import type { NewPurchase, ProductDetail, Stoa } from "@stoa/sdk";
import type { Command } from "commander";
import { openInBrowser } from "../browser.ts";
import type { Cli } from "../cli.ts";
import { action, example } from "../command.ts";
import { CommandError, Interrupted } from "../errors.ts";
import { findProduct } from "../find-product.ts";
import { amountOf, money } from "../format.ts";
import type { Column } from "../output.ts";
import { confirm } from "../prompts.ts";

interface BuyOptions {
  method?: string;
  discount?: string;
  referral?: string;
  yes?: boolean;
}

const FIRST_POLL_MS = 1_000;
const LONGEST_POLL_MS = 5_000;

const columns: Column<NewPurchase>[] = [
  { field: "orderId", title: "order" },
  { field: "status" },
  { field: "amount", title: "paid", format: amountOf },
  { field: "receipt.pdf", title: "receipt" },
];

export default function define(command: Command): void {
  command
    .argument("<product>", "its id, or words that only its title has")
    .option("--method <id>", "the payment method (default: the account's)")
    .option("--discount <code>", "a discount code")
    .option("--referral <code>", "the code of who recommended it")
    .option("-y, --yes", "do not ask before paying")
    .action(action<BuyOptions, [string]>(buy));
  example(command, "stoa buy prod_… --yes", 'stoa buy "Job interviewer" --discount SUMMER');
}

async function buy(cli: Cli, options: BuyOptions, text: string): Promise<void> {
  const stoa = await cli.stoa();
  const product = await findProduct(stoa, text);
  await mustBeWanted(cli, product, options);
  const ordered = await stoa.purchases.create({
    productId: product.id,
    // A changed price is refused. With a code it is the price after the discount, which is not known here.
    ...(!options.discount && { expectedPrice: product.price }),
    ...(options.method && { paymentMethodId: options.method }),
    ...(options.discount && { discountCode: options.discount }),
    ...(options.referral && { referralCode: options.referral }),
  });
  const order = ordered.nextAction ? await untilConfirmed(cli, stoa, ordered) : ordered;
  cli.output.object(order, columns);
  if (order.status !== "completed")
    throw new CommandError(
      `The order is ${order.status}`,
      `See it with \`stoa purchases get ${order.orderId}\`.`,
    );
  cli.output.report(`Run it: stoa run ${product.id}`);
}

async function mustBeWanted(
  cli: Cli,
  { title, price, currency }: ProductDetail,
  { yes }: BuyOptions,
): Promise<void> {
  if (price === 0 || yes) return;
  const isWanted = await confirm(
    `Buy “${title}” for ${money(price, currency)}?`,
    "Add --yes to pay without being asked.",
  );
  if (!isWanted) throw new Interrupted();
  cli.output.report("");
}

/** The bank asks the buyer on a page of its own. */
async function untilConfirmed(
  cli: Cli,
  stoa: Stoa,
  { orderId, nextAction }: NewPurchase,
): Promise<NewPurchase> {
  const url = new URL(nextAction?.url ?? "");
  cli.output.report(`Confirm the payment on this page:\n${url.href}`);
  openInBrowser(url);
  for (let delayMs = FIRST_POLL_MS; ; delayMs = Math.min(2 * delayMs, LONGEST_POLL_MS)) {
    const order = await stoa.purchases.get(orderId);
    if (order.status !== "requires_action" && order.status !== "pending") return order;
    await sleep(delayMs, undefined, { signal: cli.signal });
  }
}
