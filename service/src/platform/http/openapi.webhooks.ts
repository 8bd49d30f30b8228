import {
  type CallbackType,
  callbackData,
  callbackTypes,
  type EventType,
  eventData,
  eventSchema,
  eventTypes,
} from "@stoa/contract";
import type { Json, Schemas } from "./openapi.schemas.ts";

/** The headers of each delivery; the operator sets the prefix of our own. */
const headersUnder = (prefix: string): [name: string, description: string, isAlways?: boolean][] => [
  [`${prefix}Event-ID`, "The id of the event; the same for every attempt and every endpoint"],
  [`${prefix}Timestamp`, "The time of this attempt, in Unix seconds"],
  [`${prefix}Attempt`, "1, 2, 3 …"],
  [
    `${prefix}Signature`,
    "HMAC-SHA256 in hex of the timestamp, a dot and the raw body. The key is the whole secret. `signatureContent` and `signaturePrefix` of the endpoint can change the format",
  ],
  [
    `${prefix}Signature-Previous`,
    "The same signature with the old secret, while you change the secret",
    false,
  ],
  ["webhook-id", "The id of the event, for Standard Webhooks"],
  ["webhook-timestamp", "The time of this attempt, in Unix seconds"],
  [
    "webhook-signature",
    "The Standard Webhooks signature: `v1,` and base64, with the decoded secret as the key. One for each valid secret, separated by spaces",
  ],
];

const RESPONSES: Json = {
  "2XX": { description: "The delivery succeeded, if the response comes within 15 seconds" },
  410: { description: "The service disables the endpoint" },
  default: {
    description:
      "The attempt failed. The service tries again on a schedule, up to eight attempts. `Retry-After` with 429 or 503 extends the wait, up to an hour",
  },
};

const TO_ENDPOINTS = "Posted to each endpoint that subscribes to this event type.";
const TO_CALLBACKS = "Posted to the `webhookUrl` of the run, signed with the account's callback secret.";

/** One operation of the receiver for each event type. */
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
      content: { "application/json": { schema: schemas.of(eventSchema(type), "output") } },
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
