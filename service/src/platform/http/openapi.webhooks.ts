import {
  type CallbackType,
  callbackData,
  callbackTypes,
  type EventType,
  eventData,
  eventOf,
  eventTypes,
} from "@stoa/contract";
import type { Json, Schemas } from "./openapi.schemas.ts";

/** What comes with every delivery; our own headers begin as the operator has it. */
const headersUnder = (prefix: string): [name: string, description: string, isAlways?: boolean][] => [
  [`${prefix}Event-ID`, "The event's id: the same at every attempt and every endpoint"],
  [`${prefix}Timestamp`, "When this attempt was made, in Unix seconds"],
  [`${prefix}Attempt`, "1, 2, 3 …"],
  [
    `${prefix}Signature`,
    "Hex HMAC-SHA256, keyed with the whole secret, of the timestamp, a dot and the raw body; of the body alone, or with `sha256=` before it, where the endpoint's signatureContent or signaturePrefix say so",
  ],
  [`${prefix}Signature-Previous`, "The same by the old secret, while a new one takes its place", false],
  ["webhook-id", "The event's id, as Standard Webhooks has it"],
  ["webhook-timestamp", "When this attempt was made, in Unix seconds"],
  [
    "webhook-signature",
    "As Standard Webhooks has it: `v1,` and base64, keyed with the decoded part of the secret; one for each secret that holds, a space between them",
  ],
];

const RESPONSES: Json = {
  "2XX": { description: "Taken, if it comes within 15 seconds" },
  410: { description: "Nothing is wanted here any more: the endpoint is switched off" },
  default: {
    description:
      "Not taken: tried again by the schedule, up to eight attempts. `Retry-After` with 429 or 503 lengthens the wait, up to an hour",
  },
};

const TO_ENDPOINTS = "Posted to every endpoint that wants events of this type.";
const TO_CALLBACKS = "Posted to the `webhookUrl` of the run, signed with the account's callback secret.";

/** What is posted to those who asked for it: an operation of theirs for each type, with all that comes in. */
export function webhooksOf(headerPrefix: string, schemas: Schemas): Json {
  const parameters = headersUnder(headerPrefix).map(([name, description, required = true]) => ({
    ...{ name, in: "header", required, description },
    schema: { type: "string" },
  }));
  const operationOf = (type: EventType | CallbackType, summary: string | undefined, description: string) => ({
    ...{
      operationId: `webhooks.on.${type}`,
      tags: ["webhooks"],
      summary,
      description,
      security: [],
      parameters,
    },
    requestBody: {
      required: true,
      content: { "application/json": { schema: schemas.of(eventOf(type), "output") } },
    },
    responses: RESPONSES,
  });
  return Object.fromEntries([
    ...eventTypes.map((type) => [
      type,
      { post: operationOf(type, eventData[type].description, TO_ENDPOINTS) },
    ]),
    ...callbackTypes.map((type) => [
      type,
      { post: operationOf(type, callbackData[type].description, TO_CALLBACKS) },
    ]),
  ]);
}
