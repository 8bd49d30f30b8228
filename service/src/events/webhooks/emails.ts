import type { Context } from "../../core/context.ts";
import { type Email, renderEmail } from "../../platform/email/render-email.ts";
import { securityFootnote } from "../../platform/email/security-footnote.ts";
import type { FailingEndpoint } from "./health-queries.ts";

type EndpointUrl = Pick<FailingEndpoint, "url">;

const RECOVERY_HINT =
  "What it missed is kept for 30 days: switch it on again and ask for what it missed by POST /v1/webhooks/{id}/recover.";

export const endpointCreatedEmail = (ctx: Context, { url }: EndpointUrl): Email =>
  renderEmail({
    subject: "A new webhook endpoint was registered",
    paragraphs: [`The events of your account are posted to ${url} from now on.`],
    footnotes: [securityFootnote(ctx)],
  });

export const endpointUrlChangedEmail = (ctx: Context, { from, url }: EndpointUrl & { from: string }): Email =>
  renderEmail({
    subject: "A webhook endpoint has a new address",
    paragraphs: [`What was posted to ${from} is posted to ${url} from now on.`],
    footnotes: [securityFootnote(ctx)],
  });

export const secretRotatedEmail = (ctx: Context, { url }: EndpointUrl): Email =>
  renderEmail({
    subject: "A webhook endpoint has a new secret",
    paragraphs: [`A new secret was drawn for the webhook endpoint ${url}.`],
    footnotes: [securityFootnote(ctx)],
  });

export const callbackSecretRotatedEmail = (ctx: Context): Email =>
  renderEmail({
    subject: "Your account has a new callback secret",
    paragraphs: ["A new secret was drawn that signs what is posted to the webhookUrl of your runs."],
    footnotes: [securityFootnote(ctx)],
  });

export const endpointFailingEmail = ({ url, failingSince }: FailingEndpoint): Email =>
  renderEmail({
    subject: "Your webhook endpoint does not answer",
    paragraphs: [
      `${url} has taken nothing since ${failingSince.toUTCString()}. We go on trying, at ever longer intervals.`,
      "GET /v1/webhooks/{id}/deliveries shows each attempt with its request and its answer. After five days without a success we switch it off.",
    ],
  });

export const deliveriesExhaustedEmail = ({ url, count }: EndpointUrl & { count: number }): Email =>
  renderEmail({
    subject: "Webhook deliveries were given up",
    paragraphs: [
      `${count === 1 ? "One delivery" : `${count} deliveries`} to ${url} failed at the last of eight attempts. The endpoint takes others, so it stays on.`,
      "GET /v1/webhooks/{id}/deliveries?status=failed lists them with each answer. POST /v1/deliveries/{id}/retry has one attempted again, POST /v1/webhooks/{id}/recover all of a time.",
    ],
  });

export const endpointDisabledEmail = ({ url }: EndpointUrl): Email =>
  renderEmail({
    subject: "Your webhook endpoint is switched off",
    paragraphs: [`${url} has taken nothing for five days, so we have stopped trying.`, RECOVERY_HINT],
  });

export const endpointGoneEmail = ({ url }: EndpointUrl): Email =>
  renderEmail({
    subject: "Your webhook endpoint is switched off",
    paragraphs: [
      `${url} answered 410 Gone, which says that nothing is wanted there any more.`,
      RECOVERY_HINT,
    ],
  });
