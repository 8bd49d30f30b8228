import type { Context } from "../../core/context.ts";
import { ifNotYou } from "../../platform/email/if-not-you.ts";
import { composeLetter, type Letter } from "../../platform/email/letter.ts";
import type { FailingRow } from "./health-queries.ts";

type Named = Pick<FailingRow, "url">;

const RECOVER =
  "What it missed is kept for 30 days: switch it on again and ask for what it missed by POST /v1/webhooks/{id}/recover.";

export const endpointCreatedLetter = (ctx: Context, { url }: Named): Letter =>
  composeLetter({
    subject: "A new webhook endpoint was registered",
    paragraphs: [`The events of your account are posted to ${url} from now on.`],
    footnotes: [ifNotYou(ctx)],
  });

export const endpointMovedLetter = (ctx: Context, { from, url }: Named & { from: string }): Letter =>
  composeLetter({
    subject: "A webhook endpoint has a new address",
    paragraphs: [`What was posted to ${from} is posted to ${url} from now on.`],
    footnotes: [ifNotYou(ctx)],
  });

export const secretRotatedLetter = (ctx: Context, { url }: Named): Letter =>
  composeLetter({
    subject: "A webhook endpoint has a new secret",
    paragraphs: [`A new secret was drawn for the webhook endpoint ${url}.`],
    footnotes: [ifNotYou(ctx)],
  });

export const callbackSecretLetter = (ctx: Context): Letter =>
  composeLetter({
    subject: "Your account has a new callback secret",
    paragraphs: ["A new secret was drawn that signs what is posted to the webhookUrl of your runs."],
    footnotes: [ifNotYou(ctx)],
  });

export const failingLetter = ({ url, failingSince }: FailingRow): Letter =>
  composeLetter({
    subject: "Your webhook endpoint does not answer",
    paragraphs: [
      `${url} has taken nothing since ${failingSince.toUTCString()}. We go on trying, at ever longer intervals.`,
      "GET /v1/webhooks/{id}/deliveries shows each attempt with its request and its answer. After five days without a success we switch it off.",
    ],
  });

export const givenUpLetter = ({ url, count }: Named & { count: number }): Letter =>
  composeLetter({
    subject: "Webhook deliveries were given up",
    paragraphs: [
      `${count === 1 ? "One delivery" : `${count} deliveries`} to ${url} failed at the last of eight attempts. The endpoint takes others, so it stays on.`,
      "GET /v1/webhooks/{id}/deliveries?status=failed lists them with each answer. POST /v1/deliveries/{id}/retry has one attempted again, POST /v1/webhooks/{id}/recover all of a time.",
    ],
  });

export const switchedOffLetter = ({ url }: Named): Letter =>
  composeLetter({
    subject: "Your webhook endpoint is switched off",
    paragraphs: [`${url} has taken nothing for five days, so we have stopped trying.`, RECOVER],
  });

export const goneLetter = ({ url }: Named): Letter =>
  composeLetter({
    subject: "Your webhook endpoint is switched off",
    paragraphs: [`${url} answered 410 Gone, which says that nothing is wanted there any more.`, RECOVER],
  });
