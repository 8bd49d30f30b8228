import {
  type Accepted,
  type Endpoint,
  type EndpointRequest,
  type EndpointResponse,
  type ErrorCode,
  errorCatalogue,
  errorsOf,
  Failure,
  isFilter,
  isRepeatable,
  ListMeta,
  Meta,
  OpenAiError,
  statusOf,
} from "@stoa/contract";
import type { z } from "zod";
import { VERSION } from "../../core/version.ts";
import { FRESH_MINUTES } from "./fresh-sign-in.ts";
import { openAiStatusOf, toOpenAiError } from "./openai-error.ts";
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

/** An absent filter means `all`. */
const withAll = (schema: Json): Json => ({
  ...schema,
  ...(Array.isArray(schema["enum"]) && { enum: [...schema["enum"], "all"] }),
  ...(schema["type"] === "string" && { default: "all" }),
});

const hasEtag = ({ method, response }: Endpoint) =>
  method === "GET" && response.kind !== "file" && response.kind !== "events";

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
          ? "Makes a repeat safe for 24 hours. A repeat is 409 CONFLICT and names the created resource, because the secret is not stored"
          : "Makes a repeat safe for 24 hours. A repeat gets the first response again; after a crash, the present state of the resource",
      ),
    );
  }
  if (endpoint.supportsIfMatch)
    headers.push(header("If-Match", "Change the resource only if this is still its ETag"));
  if (endpoint.response.kind === "events") headers.push(header("Last-Event-ID", "Continue after this event"));
  const preference = preferenceOf(acceptedOf(endpoint));
  if (preference) headers.push(header("Prefer", preference));
  if (hasEtag(endpoint)) {
    headers.push(header("If-None-Match", "Return 304 if this is still the ETag"));
  }
  return headers;
}

const acceptedOf = ({ response }: Endpoint): Accepted | null =>
  response.kind === "one" ? response.accepted : null;

function preferenceOf(accepted: Accepted | null): string | null {
  if (accepted?.kind === "background")
    return "`respond-async`: return 202 at once and continue in the background";
  return accepted?.supportsPreferWait
    ? "`wait=N`: return 200 if the run ends within N seconds (at most 60), else 202"
    : null;
}

const successOf = (endpoint: Endpoint, schemas: Schemas): Json => ({
  description: descriptionOf(endpoint.response),
  headers: successHeadersOf(endpoint, hasEtag(endpoint))["headers"],
  content: responseContentOf(endpoint.response, schemas),
});

function descriptionOf(response: EndpointResponse): string {
  if (response.kind === "file") return "A file";
  if (response.kind === "events") return "A stream of events";
  return "canStream" in response && response.canStream
    ? "Success, or a stream of events if requested"
    : "Success";
}

function responseContentOf(response: EndpointResponse, schemas: Schemas): Json {
  switch (response.kind) {
    case "file":
      return filesOf(response.types);
    case "list":
      return enveloped({ type: "array", items: schemas.of(response.item, "output") }, ListMeta, schemas);
    case "events":
      // Only adds the schema to the components: the content of an event stream names none.
      schemas.of(response.data, "output");
      return eventsContent;
    case "foreign":
      return { ...bare(schemas.of(response.data, "output")), ...(response.canStream && eventsContent) };
    case "one":
      return {
        ...enveloped(schemas.of(response.data, "output"), Meta, schemas),
        ...(response.canStream && eventsContent),
      };
  }
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

function acceptedResponseOf(endpoint: Endpoint, success: Json, schemas: Schemas): Json {
  const accepted = acceptedOf(endpoint);
  switch (accepted?.kind) {
    case "pending":
      return { 202: { ...success, description: "Accepted: the result is not known yet" } };
    case "background": {
      const content = enveloped(schemas.of(accepted.data, "output"), Meta, schemas);
      const { headers } = successHeadersOf(endpoint, false);
      return { 202: { description: "Accepted: the run continues in the background", headers, content } };
    }
    case undefined:
      return {};
  }
}

const isForeign = ({ response }: Endpoint) => response.kind === "foreign";

function exampleOf(endpoint: Endpoint, code: ErrorCode): Json {
  const { message } = errorCatalogue[code];
  const field = { field: "price", reason: "price must be positive" };
  const details = code === "INVALID_REQUEST" ? { details: { ...field, errors: [field] } } : {};
  if (isForeign(endpoint)) return { value: toOpenAiError({ code, message, details: details.details }) };
  const meta = { timestamp: "2026-01-31T12:00:00.000Z", request_id: "01kf5v8q-example" };
  return {
    value: { success: false, error: { code, message, ...details, docUrl: `/docs/errors#${code}` }, meta },
  };
}

function failuresOf(endpoint: Endpoint, schemas: Schemas): Json {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of errorsOf(endpoint).sort(REFUSALS_FIRST)) {
    const status = isForeign(endpoint) ? openAiStatusOf(code) : errorCatalogue[code].status;
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const schema = schemas.of(isForeign(endpoint) ? OpenAiError : Failure, "output");
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

const FRESH = ` A session must come from a sign-in of the last ${FRESH_MINUTES} minutes. An older one gets 403 \`UNAUTHORIZED\` with \`details.required: "fresh-sign-in"\`.`;

function whoMayCall({ access, requiresFreshSignIn }: Endpoint): string | null {
  if (access.who === "public") return null;
  if (access.who === "admin") return "Needs an administrator's session with two-factor authentication.";
  const role =
    ("rolePermission" in access ? ` The account's role must have \`${access.rolePermission}\`.` : "") +
    (requiresFreshSignIn ? FRESH : "");
  if (access.who === "session") return `Needs a session; API keys and OAuth tokens are refused.${role}`;
  if (access.permission === null)
    return `Accepts any credential${access.who === "visitor" ? ", also the cookie of a guest" : " of an account"}.${role}`;
  return `Needs the permission \`${access.permission}\`.${role}`;
}

const requestOf = ({ request }: Endpoint, schemas: Schemas): Json =>
  request.kind === "none"
    ? {}
    : { requestBody: { required: true, content: requestContentOf(request, schemas) } };

function requestContentOf(request: Exclude<EndpointRequest, { kind: "none" }>, schemas: Schemas): Json {
  switch (request.kind) {
    case "json":
      return {
        "application/json": { schema: schemas.of(request.body, "input"), example: request.example },
      };
    case "upload":
      return {
        "multipart/form-data": { schema: withFile(schemas.of(request.fields, "input"), request.maxBytes) },
      };
    case "raw":
      return filesOf(request.types);
  }
}

const withFile = (fields: Json, maxBytes: number): Json => ({
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
      [statusOf(endpoint)]: success,
      ...acceptedResponseOf(endpoint, success, schemas),
      ...(hasEtag(endpoint) && { 304: { description: "Not modified" } }),
      ...failuresOf(endpoint, schemas),
    },
  };
}

const TAGS: Record<string, string> = {
  products: "Find, read and manage products",
  files: "Files and images of products",
  categories: "The category tree of products",
  tags: "Tags that sellers give their products",
  reviews: "Reviews and ratings by buyers",
  sellers: "Public profiles of sellers",
  wishlist: "Products that you want to remember",
  purchases: "Buy products and read your purchases",
  sales: "Your sales, with fee, commission, tax and earnings of each",
  "discount-codes": "Discount codes for your products",
  refunds: "Request refunds as a buyer, decide about them as a seller",
  payouts: "Your balance and your payouts",
  analytics: "Sales, revenue and customers of your products, calculated from the ledger",
  "payment-methods": "Stored payment methods and the default one",
  ai: "Run prompts and workflows with your own provider keys",
  evaluations: "Evaluate your products by their test sets, on several models",
  openai: "OpenAI-compatible endpoints for your prompts; the base URL is the URL of this API and `/openai`",
  account: "Your account: profile, plan, security and sessions",
  events: "Events of your products and purchases",
  webhooks: "Webhook endpoints and the log of their deliveries",
  "sign-in":
    "Sign in with an emailed link or a password, and sign out. Browsers sign in with GitHub or Google at `/api/auth/github` and `/api/auth/google`, if the operator has configured it",
  "api-keys": "API keys for your programs",
  notifications: "What happened to your sales, purchases, runs and account, and which of it comes by email",
  "request-logs": "What your programs asked of the API",
  oauth:
    "OAuth clients and their grants. `/.well-known/oauth-authorization-server` describes the OAuth 2.0 server itself",
  admin: "Administration of the marketplace",
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
        "Each response is an envelope: `success`, `data` or `error`, and `meta`. Unknown fields and parameters are refused. If a JSON key appears twice, the last value counts.\n\nAn empty query parameter counts as absent, and enumerated query values may have any case. `null` for an optional field of a POST or PUT body counts as absent. Names and titles with invisible characters (control, bidirectional, tags) are refused; the service removes them from longer texts. A path may end with a slash, and every GET path supports HEAD. The sign-in paths under `/api/auth` also exist under `/v1/api/auth`.",
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
