import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import type { CreateProduct, Stoa, Subscription } from "@stoa/sdk";
import type { Cli } from "../cli.ts";
import { CommandError } from "../errors.ts";
import { signInByMailbox } from "./mailbox.ts";

export interface Stage {
  cli: Cli;
  /** The caller, who gets the event. Its calls go on after Ctrl-C, so that no product or endpoint is left. */
  stoa: Stoa;
}

export interface Scenario {
  /** What it does, for `stoa trigger --list`. */
  summary: string;
  run: (stage: Stage) => Promise<void>;
}

/** How each type of event is made to happen: by the requests of a user. */
export const scenarios: Readonly<Record<string, Scenario>> = {
  "product.published": {
    summary: "publishes a product, and deletes it",
    run: (stage) => withProduct(stage, async () => {}),
  },
  "product.updated": {
    summary: "changes a product, and deletes it",
    run: (stage) =>
      withProduct(stage, async (productId) => {
        await stage.stoa.products.update(productId, { description: "Changed by stoa trigger." });
      }),
  },
  "product.unpublished": {
    summary: "takes a product off sale, and deletes it",
    run: (stage) =>
      withProduct(stage, async (productId) => {
        await stage.stoa.products.unpublish(productId);
      }),
  },
  "purchase.completed": {
    summary: "a second person buys a product of yours",
    run: (stage) => withPurchase(stage, async () => {}),
  },
  "purchase.refunded": {
    summary: "a second person buys a product of yours and gets a refund",
    run: (stage) => withPurchase(stage, refund),
  },
  "review.created": {
    summary: "a second person buys and reviews a product of yours",
    run: (stage) =>
      withPurchase(stage, async ({ buyer, productId }) => {
        await buyer.reviews.create(productId, { rating: 5, comment: "Triggered by the command line." });
      }),
  },
  "payout.completed": {
    summary: "pays out your balance, if it is past its refund days",
    run: requestPayout,
  },
  "evaluation.completed": {
    summary: "evaluates a product in the sandbox, and deletes it",
    run: (stage) => withProduct(stage, (productId) => evaluate(stage, productId)),
  },
  "evaluation.regressed": {
    summary: "evaluates a product and a worse version of it in the sandbox, and deletes it",
    run: (stage) => withProduct(stage, (productId) => regress(stage, productId)),
  },
  "user.subscription.updated": {
    summary: "upgrades your plan by one, and plans the way back for the end of the month",
    run: changePlan,
  },
  test: {
    summary: "sends a test event to an endpoint that exists for a moment",
    run: sendTestEvent,
  },
};

const PRODUCT: CreateProduct = {
  title: "Triggered by the command line",
  description: "Made by `stoa trigger`, and deleted at once.",
  type: "PROMPT",
  category: "writing",
  price: 4.99,
  content: "Write a haiku about {{topic}}.",
  compatibility: ["openai"],
};

/** With a product on sale, which is gone afterwards. */
async function withProduct({ cli, stoa }: Stage, work: (productId: string) => Promise<void>): Promise<void> {
  const { id } = await stoa.products.create(PRODUCT);
  try {
    cli.signal.throwIfAborted();
    await stoa.products.publish(id);
    cli.signal.throwIfAborted();
    await work(id);
  } finally {
    await stoa.products.delete(id);
  }
}

const LOOK_AGAIN_MS = 200;

async function evaluate(stage: Stage, productId: string): Promise<void> {
  const assert = [{ type: "contains", value: "haiku" }];
  // Two cases: with one, the intervals of "all pass" and "none passes" overlap.
  const cases = ["rain", "snow"].map((topic) => ({
    title: `Haiku about ${topic}`,
    input: { topic },
    assert,
  }));
  await stage.stoa.products.testSet.replace(productId, { cases });
  await runEvaluation(stage, productId);
}

async function regress(stage: Stage, productId: string): Promise<void> {
  await evaluate(stage, productId);
  await stage.stoa.products.update(productId, { content: "Write a limerick about {{topic}}." });
  await runEvaluation(stage, productId);
}

async function runEvaluation({ cli, stoa }: Stage, productId: string): Promise<void> {
  const models = [{ apiKeyId: "sandbox", model: "sandbox-echo" }];
  const { id } = await stoa.evaluations.create(productId, { models, repeats: 1, maxCost: 1 });
  while ((await stoa.evaluations.get(id)).status === "running")
    await setTimeout(LOOK_AGAIN_MS, undefined, { signal: cli.signal });
}

interface Purchase extends Stage {
  buyer: Stoa;
  productId: string;
  orderId: string;
}

async function withPurchase(stage: Stage, work: (purchase: Purchase) => Promise<void>): Promise<void> {
  // A new one each time: an address gets few links, and a buyer few refunds.
  const email = `trigger-${randomUUID()}@example.com`;
  const buyer = await signInByMailbox(stage.cli, stage.stoa, email);
  try {
    await withProduct(stage, async (productId) => {
      const { orderId } = await buyer.purchases.create({ productId });
      stage.cli.signal.throwIfAborted();
      await work({ ...stage, buyer, productId, orderId });
    });
  } finally {
    await buyer.account.close({ confirm: email });
  }
}

/** A refund that the seller decides about is the caller's to approve. */
async function refund({ stoa, buyer, orderId }: Purchase): Promise<void> {
  const { id, status } = await buyer.refunds.create(orderId, { reason: "other" });
  if (status === "pending") await stoa.refunds.approve(id);
}

function requestPayout(stage: Stage): Promise<void> {
  return withSession(stage, async (session) => {
    try {
      await session.payouts.create();
    } catch (error) {
      const { status, message } = error as { status?: number; message: string };
      if (status !== 422) throw error;
      throw new CommandError(
        `No payout can complete now: ${message}`,
        "Earnings are paid out when the refund days of their purchases are over: see `stoa payouts balance`.",
      );
    }
  });
}

function changePlan(stage: Stage): Promise<void> {
  return withSession(stage, async (session) => {
    const subscription = await session.account.subscription.get();
    const { plan } = subscription;
    const next = findNextPlan(subscription);
    await session.account.subscription.update({ plan: next });
    const { scheduled } = await session.account.subscription.update({ plan });
    const end = scheduled ? ` until ${scheduled.effectiveDate.slice(0, 10)}` : "";
    stage.cli.output.report(`Your plan is ${next}${end}, paid by a test method. It was ${plan}.`);
  });
}

function findNextPlan({ plan, offers }: Subscription): string {
  const present = offers.findIndex((offer) => offer.plan === plan);
  const next = offers
    .slice(present + 1)
    .find(({ monthlyPrice }) => monthlyPrice !== null && monthlyPrice > 0);
  if (next) return next.plan;
  throw new CommandError(
    `There is no higher plan than ${plan} that can be bought`,
    "Use another account, such as a new one.",
  );
}

/** With a session of the caller, who may do more in it than with a key. */
async function withSession({ cli, stoa }: Stage, work: (session: Stoa) => Promise<void>): Promise<void> {
  const { email } = await stoa.account.get();
  const session = await signInByMailbox(cli, stoa, email);
  try {
    cli.signal.throwIfAborted();
    await work(session);
  } finally {
    await session.signIn.logOut();
  }
}

async function sendTestEvent({ cli, stoa }: Stage): Promise<void> {
  const { baseUrl } = await cli.settings();
  const url = new URL("/dev/hooks/stoa-trigger", baseUrl).href;
  const { id } = await stoa.webhooks.create({ url, eventTypes: ["test"] });
  try {
    cli.signal.throwIfAborted();
    await stoa.webhooks.test(id);
  } finally {
    await stoa.webhooks.delete(id);
  }
}
