import type { Context } from "../../core/context.ts";
import { type Email, renderEmail } from "../../platform/email/render-email.ts";
import { securityFootnote } from "../../platform/email/security-footnote.ts";
import type { FailingEndpoint } from "./health-queries.ts";

type EndpointUrl = Pick<FailingEndpoint, "url">;

const RECOVERY_HINT =
  "Events are stored for 30 days: enable the endpoint again, and resend what it missed with POST /v1/webhooks/{id}/recover.";

export const endpointCreatedEmail = (ctx: Context, { url }: EndpointUrl): Email =>
  renderEmail({
    subject: "A new webhook endpoint was registered",
    paragraphs: [`The events of your account are sent to ${url} from now on.`],
    footnotes: [securityFootnote(ctx)],
  });

export const endpointUrlChangedEmail = (ctx: Context, { from, url }: EndpointUrl & { from: string }): Email =>
  renderEmail({
    subject: "A webhook endpoint has a new address",
    paragraphs: [`Events that were sent to ${from} are sent to ${url} from now on.`],
    footnotes: [securityFootnote(ctx)],
  });

export const secretRotatedEmail = (ctx: Context, { url }: EndpointUrl): Email =>
  renderEmail({
    subject: "A webhook endpoint has a new secret",
    paragraphs: [`A new secret was created for the webhook endpoint ${url}.`],
    footnotes: [securityFootnote(ctx)],
  });

export const callbackSecretRotatedEmail = (ctx: Context): Email =>
  renderEmail({
    subject: "Your account has a new callback secret",
    paragraphs: ["A new secret was created. It signs the callbacks to the webhookUrl of your runs."],
    footnotes: [securityFootnote(ctx)],
  });

export const endpointFailingEmail = ({ url, failingSince }: FailingEndpoint): Email =>
  renderEmail({
    subject: "Your webhook endpoint does not answer",
    paragraphs: [
      `${url} has accepted no delivery since ${failingSince.toUTCString()}. We retry at growing intervals.`,
      "GET /v1/webhooks/{id}/deliveries shows each attempt with its request and response. After five days without a success we disable the endpoint.",
    ],
  });

export const deliveriesExhaustedEmail = ({ url, count }: EndpointUrl & { count: number }): Email =>
  renderEmail({
    subject: "Webhook deliveries were given up",
    paragraphs: [
      `${count === 1 ? "One delivery" : `${count} deliveries`} to ${url} failed at the last of eight attempts. The endpoint accepts other deliveries, so it stays enabled.`,
      "GET /v1/webhooks/{id}/deliveries?status=failed lists them with each response. POST /v1/deliveries/{id}/retry resends one, POST /v1/webhooks/{id}/recover all of a time range.",
    ],
  });

export const endpointDisabledEmail = ({ url }: EndpointUrl): Email =>
  renderEmail({
    subject: "Your webhook endpoint is switched off",
    paragraphs: [`${url} has accepted no delivery for five days, so we disabled it.`, RECOVERY_HINT],
  });

export const endpointGoneEmail = ({ url }: EndpointUrl): Email =>
  renderEmail({
    subject: "Your webhook endpoint is switched off",
    paragraphs: [`${url} responded 410 Gone, so we disabled it.`, RECOVERY_HINT],
  });
