import {
  type Endpoint,
  type ErrorCode,
  errorCatalogue,
  errorsOf,
  Failure,
  isFilter,
  isRepeatable,
  ListMeta,
  Meta,
  OpenAiError,
} from "@stoa/contract";
import type { z } from "zod";
import { VERSION } from "../../core/version.ts";
import { FRESH_MINUTES } from "./fresh-sign-in.ts";
import { inOpenAiWords, openAiStatusOf } from "./openai-error.ts";
import { failureHeadersOf, responseHeaders, successHeadersOf } from "./openapi.headers.ts";
import { type Json, Schemas } from "./openapi.schemas.ts";
import { securityOf, securitySchemes } from "./openapi.security.ts";
import { webhooksOf } from "./openapi.webhooks.ts";

const REFUSALS_FIRST = (a: ErrorCode, b: ErrorCode) => errorCatalogue[a].status - errorCatalogue[b].status;

const isRequired = (schema: z.ZodType) => !schema.safeParse(undefined).success;

function parametersOf(endpoint: Endpoint, schemas: Schemas): Json[] {
  const path = Object.entries(endpoint.params.shape).map(([name, schema]) => ({
    name,
    in: "path",
    required: true,
    schema: schemas.of(schema as z.ZodType, "output"),
  }));
  const query = Object.entries(endpoint.query.shape).map(([name, value]) => {
    const schema = value as z.ZodType;
    const { description, ...rest } = schemas.of(schema, "output");
    return {
      name,
      in: "query",
      required: isRequired(schema),
      ...(description ? { description } : {}),
      schema: isFilter(schema) ? withAll(rest) : rest,
    };
  });
  return [...path, ...query, ...headersOf(endpoint)];
}

/** A filter is `all` when it is absent. */
const withAll = (schema: Json): Json => ({
  ...schema,
  ...(Array.isArray(schema["enum"]) && { enum: [...schema["enum"], "all"] }),
  ...(schema["type"] === "string" && { default: "all" }),
});

const hasEtag = ({ method, answersFile, answersEvents }: Endpoint) =>
  method === "GET" && !answersFile && !answersEvents;

/** A file by the media types that it may have. */
const filesOf = (types: readonly string[]): Json =>
  Object.fromEntries(types.map((type) => [type, { schema: { type: "string", format: "binary" } }]));

function headersOf(endpoint: Endpoint): Json[] {
  const header = (name: string, description: string) => ({
    name,
    in: "header",
    description,
    schema: { type: "string" },
  });
  const headers = [];
  if (isRepeatable(endpoint)) {
    headers.push(
      header(
        "Idempotency-Key",
        endpoint.showsSecret
          ? "Makes a repeat safe for 24 hours: it is 409 CONFLICT and names what was made, since the secret is not kept"
          : "Makes a repeat safe for 24 hours: the first answer is sent again; after a crash, the present state of what was written",
      ),
    );
  }
  if (endpoint.conditional) headers.push(header("If-Match", "Change only if this is still the ETag"));
  if (endpoint.answersEvents) headers.push(header("Last-Event-ID", "Go on after this event"));
  if (endpoint.accepted) {
    headers.push(header("Prefer", "`respond-async`: answer 202 at once, and go on without the caller"));
  }
  if (endpoint.waitsWhenAsked) {
    headers.push(
      header("Prefer", "`wait=N`: answer 200 if it has ended within N seconds (at most 60), else 202"),
    );
  }
  if (hasEtag(endpoint)) {
    headers.push(header("If-None-Match", "304 when this is still the ETag"));
  }
  return headers;
}

function successOf(endpoint: Endpoint, schemas: Schemas): Json {
  const { headers } = successHeadersOf(endpoint, hasEtag(endpoint));
  if (endpoint.answersFile) return { description: "A file", headers, content: filesOf(endpoint.answersFile) };
  const data = schemas.of(endpoint.data, "output");
  if (endpoint.answersEvents) return { description: "Events as they come", headers, content: eventsContent };
  const whole = endpoint.list ? { type: "array", items: data } : data;
  const content = {
    ...(endpoint.inWordsOf ? bare(data) : enveloped(whole, endpoint.list ? ListMeta : Meta, schemas)),
    ...(endpoint.eventsWhenAsked && eventsContent),
  };
  const description = endpoint.eventsWhenAsked
    ? "Success; or events as they come, when asked for"
    : "Success";
  return { description, headers, content };
}

const eventsContent: Json = {
  "text/event-stream": { schema: { type: "string", contentMediaType: "text/event-stream" } },
};

const bare = (data: Json): Json => ({ "application/json": { schema: data } });

const enveloped = (data: Json, meta: z.ZodType, schemas: Schemas): Json => ({
  "application/json": {
    schema: {
      type: "object",
      required: ["success", "data", "meta"],
      properties: { success: { const: true }, data, meta: schemas.of(meta, "output") },
    },
  },
});

function acceptedOf(endpoint: Endpoint, schemas: Schemas): Json {
  const { accepted } = endpoint;
  if (!accepted) return {};
  const content = enveloped(schemas.of(accepted, "output"), Meta, schemas);
  const { headers } = successHeadersOf(endpoint, false);
  return { 202: { description: "Accepted: it goes on without its caller", headers, content } };
}

function exampleOf({ inWordsOf }: Endpoint, code: ErrorCode): Json {
  const { message } = errorCatalogue[code];
  const field = { field: "price", reason: "price must be positive" };
  const details = code === "INVALID_REQUEST" ? { details: { ...field, errors: [field] } } : {};
  if (inWordsOf) return { value: inOpenAiWords({ code, message, details: details.details }) };
  const meta = { timestamp: "2026-01-31T12:00:00.000Z", request_id: "01kf5v8q-example" };
  return {
    value: { success: false, error: { code, message, ...details, docUrl: `/docs/errors#${code}` }, meta },
  };
}

function failuresOf(endpoint: Endpoint, schemas: Schemas): Json {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of errorsOf(endpoint).sort(REFUSALS_FIRST)) {
    const status = endpoint.inWordsOf ? openAiStatusOf(code) : errorCatalogue[code].status;
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const schema = schemas.of(endpoint.inWordsOf ? OpenAiError : Failure, "output");
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => {
      const examples = Object.fromEntries(codes.map((code) => [code, exampleOf(endpoint, code)]));
      return [
        status,
        {
          description: codes.join(", "),
          ...failureHeadersOf(endpoint, status, codes),
          content: { "application/json": { schema, examples } },
        },
      ];
    }),
  );
}

/** The row of the role matrix that an endpoint is, in words. */
const FRESH = ` A session must be of a sign-in of the last ${FRESH_MINUTES} minutes; an older one is 403 \`UNAUTHORIZED\` with \`details.required: "fresh-sign-in"\`.`;

function whoMayCall({ access, freshSignIn }: Endpoint): string | null {
  if (access.who === "public") return null;
  if (access.who === "admin") return "Needs an administrator's session, entered with two factors.";
  const role =
    ("rolePermission" in access ? ` The account's role must have \`${access.rolePermission}\`.` : "") +
    (freshSignIn ? FRESH : "");
  if (access.who === "session") return `Needs a session; API keys and OAuth tokens are refused.${role}`;
  if (access.permission === null) return `Takes any credential of an account.${role}`;
  return `Needs the permission \`${access.permission}\`.${role}`;
}

function requestOf({ body, rawBody, upload, example }: Endpoint, schemas: Schemas): Json {
  if (rawBody) return { requestBody: { required: true, content: filesOf(rawBody.types) } };
  if (!body) return {};
  const schema = schemas.of(body, "input");
  const content = upload
    ? { "multipart/form-data": { schema: withFile(schema, upload) } }
    : { "application/json": { schema, ...(example && { example }) } };
  return { requestBody: { required: true, content } };
}

const withFile = (fields: Json, { maxBytes }: NonNullable<Endpoint["upload"]>): Json => ({
  ...fields,
  required: [...((fields["required"] as string[] | undefined) ?? []), "file"],
  properties: {
    file: {
      type: "string",
      format: "binary",
      description: `The file, with its name; at most ${maxBytes} bytes`,
    },
    ...(fields["properties"] as Json),
  },
});

function operationOf(endpoint: Endpoint, schemas: Schemas): Json {
  const success = successOf(endpoint, schemas);
  return {
    operationId: endpoint.name,
    tags: [endpoint.tag],
    summary: endpoint.summary,
    description: [endpoint.description, whoMayCall(endpoint)].filter(Boolean).join("\n\n"),
    security: securityOf(endpoint),
    parameters: parametersOf(endpoint, schemas),
    ...requestOf(endpoint, schemas),
    responses: {
      [endpoint.status]: success,
      ...(endpoint.maybeAccepted && {
        202: { ...success, description: "Accepted; the outcome is not known yet" },
      }),
      ...acceptedOf(endpoint, schemas),
      ...(hasEtag(endpoint) && { 304: { description: "Not modified" } }),
      ...failuresOf(endpoint, schemas),
    },
  };
}

const TAGS: Record<string, string> = {
  products: "Find, read and manage products",
  files: "What buyers download, and the pictures on a product's page",
  categories: "The tree that products are sorted into",
  tags: "The words that sellers give their products",
  reviews: "What buyers say",
  purchases: "Buy products, and read what you bought",
  sales: "What was bought of you, and how its price was parted",
  "discount-codes": "What buyers of your products take off the price",
  refunds: "Get money back, and decide about it as the seller",
  payouts: "What you have earned, and how it gets to you",
  analytics: "What your products sold and earned, exactly as the books have it",
  "payment-methods": "What you pay with, and which of them pays when you name none",
  ai: "Run what you bought with your own provider keys",
  openai: "What you may run, for programs that speak with OpenAI: the base URL of this API and `/openai`",
  account: "Your account, its plan, its security and where you are signed in",
  events: "What happened to your products and purchases",
  webhooks: "Endpoints that events are posted to, and the log of what was",
  "sign-in":
    "Come in by a mailed link or a password, and leave again. A browser comes in by another site at `/api/auth/github` or `/api/auth/google`, where the operator has set that up",
  "api-keys": "The keys that programs of yours come in with",
  oauth:
    "Applications that act in people's names. The OAuth 2.0 server itself is described at `/.well-known/oauth-authorization-server`",
  admin: "Run the marketplace",
};

/** The OpenAPI 3.1 document of the contract's endpoints and events. `origin` is null in the committed copy. */
export function openApiDocument(endpoints: Endpoint[], origin: string | null, headerPrefix: string): Json {
  const schemas = new Schemas();
  const paths: Record<string, Json> = {};
  for (const endpoint of endpoints) {
    const path = endpoint.path.replace(/:(\w+)/g, "{$1}");
    const atRoot = endpoint.base === "/v1" ? {} : { servers: [{ url: (origin ?? "") + endpoint.base }] };
    paths[path] = {
      ...paths[path],
      ...atRoot,
      [endpoint.method.toLowerCase()]: operationOf(endpoint, schemas),
    };
  }
  return {
    openapi: "3.1.1",
    info: {
      title: "Stoa",
      version: VERSION,
      summary: "A marketplace for AI prompts and workflows that anyone can host",
      description:
        "Every answer is an envelope: `success`, `data` or `error`, and `meta`. Unknown fields and parameters are refused. Of duplicate JSON keys the last counts.\n\nAn empty query parameter counts as absent, and enumerated query values may have any case. `null` for an optional field of a POST or PUT body means that the field is not given. Names and titles with invisible characters (control, bidirectional, tags) are refused; texts of several lines are stored without them. A path may end with a slash, and every GET path answers HEAD. Sign-in under `/api/auth` is also found under `/v1/api/auth`.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: origin ? `${origin}/v1` : "/v1" }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    security: [{ bearer: [] }],
    paths,
    webhooks: webhooksOf(headerPrefix, schemas),
    components: {
      schemas: schemas.components,
      headers: responseHeaders,
      securitySchemes: securitySchemes(origin ?? ""),
    },
  };
}
