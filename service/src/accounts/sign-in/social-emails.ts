import { type Email, renderEmail } from "../../platform/email/render-email.ts";

export const identityLinkedEmail = (provider: string): Email =>
  renderEmail({
    subject: `${provider} can sign you in now`,
    paragraphs: [
      `Somebody with a ${provider} account that has your mail address signed in. From now on that ${provider} account opens your account here.`,
    ],
    footnotes: [
      `If this was not you, look after your mailbox and your ${provider} account first: somebody else can use one of them.`,
    ],
  });
