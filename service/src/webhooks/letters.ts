import { composeLetter, type Letter } from "../mail/letter.ts";
import type { FailingRow } from "./health-queries.ts";

type Named = Pick<FailingRow, "url">;

const RECOVER =
  "What it missed is kept for 30 days: switch it on again and ask for what it missed by POST /v1/webhooks/{id}/recover.";

export const failingLetter = ({ url, failingSince }: FailingRow): Letter =>
  composeLetter({
    subject: "Your webhook endpoint does not answer",
    paragraphs: [
      `${url} has taken nothing since ${failingSince.toUTCString()}. We go on trying, at ever longer intervals.`,
      "GET /v1/webhooks/{id}/deliveries shows each attempt with its request and its answer. After five days without a success we switch it off.",
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
