import { type Email, renderEmail } from "../../platform/email/render-email.ts";

export const identityUnlinkedEmail = (provider: string): Email =>
  renderEmail({
    subject: `${provider} no longer signs you in`,
    paragraphs: [
      `You unlinked ${provider} from your account. You can sign in by an emailed link as before; a sign-in at ${provider} with your email address links it again.`,
    ],
    footnotes: ["If this was not you, sign in and end all other sessions of your account."],
  });

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
