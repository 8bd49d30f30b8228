import { type Email, renderEmail } from "../../platform/email/render-email.ts";

export const identityLinkedEmail = (provider: string): Email =>
  renderEmail({
    subject: `${provider} can sign you in now`,
    paragraphs: [
      `Someone signed in with a ${provider} account that has your email address. From now on that ${provider} account can sign in to your account here.`,
    ],
    footnotes: [
      `If this was not you, secure your email account and your ${provider} account first: someone else has access to one of them.`,
    ],
  });
