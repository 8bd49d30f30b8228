import { readFileSync } from "node:fs";

/** What a later version of the service may add: fields, values of enums and codes, events and fields of events. */
const ADDED = { addedLater: { list: [{ deep: null }] } };
const ADDED_VALUE = "added_later";
const ADDED_EVENTS = `event: ${ADDED_VALUE}\ndata: {"addedLater":true}\n\nnovelty: 1\nretry: 10\n: comment\n\n`;

/** Looks like a value of an enum or a code: `completed`, `PRODUCT_NOT_FOUND`, `purchase.completed`. */
const ENUM_LIKE = /^([a-z]+([_.][a-z]+)*|[A-Z]+(_[A-Z]+)*)$/;

/** Adds fields to each object, and replaces each string that looks like a value of an enum. */
export function widen(value: unknown): unknown {
  if (typeof value === "string") return ENUM_LIKE.test(value) ? ADDED_VALUE : value;
  if (Array.isArray(value)) return value.map(widen);
  if (value === null || typeof value !== "object") return value;
  const fields = Object.entries(value).map(([name, field]) => [name, widen(field)]);
  return { ...Object.fromEntries(fields), ...ADDED };
}

/** `fetch`, as if a later version of the service answered. */
export const laterFetch: typeof fetch = async (input, init) => {
  const response = await fetch(input, init);
  const type = response.headers.get("content-type") ?? "";
  const { status, headers } = response;
  if (type.startsWith("text/event-stream"))
    return new Response(response.body!.pipeThrough(widenEvents()), { status, headers });
  if (!/^application\/json(;|$)/.test(type)) return response;
  return Response.json(widen(await response.json()), { status, headers: withoutLength(headers) });
};

function withoutLength(headers: Headers): Headers {
  const copy = new Headers(headers);
  for (const name of ["content-length", "content-encoding"]) copy.delete(name);
  return copy;
}

/** Adds events of unknown types before each event, and fields to its data. */
function widenEvents(): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  let text = "";
  return new TransformStream({
    transform(chunk, controller) {
      text += decoder.decode(chunk, { stream: true });
      const events = text.split("\n\n");
      text = events.pop()!;
      for (const event of events)
        controller.enqueue(encoder.encode(`${ADDED_EVENTS}${widenEvent(event)}\n\n`));
    },
  });
}

const widenEvent = (event: string) =>
  event.replace(/^data: (.*)$/m, (_, data) => `data: ${JSON.stringify(widen(JSON.parse(data)))}`);

interface Schema {
  $ref?: string;
  const?: unknown;
  enum?: unknown[];
  type?: string;
  format?: string;
  anyOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
}

interface Operation {
  operationId: string;
  responses: Record<string, { content?: Record<string, { schema?: Schema }> }>;
}

const document = JSON.parse(
  readFileSync(new URL("../../docs/openapi.gen.json", import.meta.url), "utf8"),
) as { paths: Record<string, Record<string, Operation>>; components: { schemas: Record<string, Schema> } };

const operations = new Map(
  Object.values(document.paths)
    .flatMap((methods) => Object.values(methods))
    .map((operation) => [operation.operationId, operation]),
);

/** Schemas that contain themselves end here. */
const MAX_DEPTH = 12;

function sampleOf(schema: Schema, depth = 0): unknown {
  if (depth > MAX_DEPTH) return null;
  const inner = (each: Schema) => sampleOf(each, depth + 1);
  if (schema.$ref) return inner(document.components.schemas[schema.$ref.split("/").at(-1)!]!);
  if (schema.anyOf) return inner(schema.anyOf[0]!);
  if (typeof schema.const === "boolean") return schema.const;
  if (schema.const !== undefined || schema.enum) return ADDED_VALUE;
  if (schema.type === "array") return [inner(schema.items ?? {}), inner(schema.items ?? {})];
  if (schema.type === "object") {
    const fields = Object.entries(schema.properties ?? {}).map(([name, field]) => [name, inner(field)]);
    const others = schema.additionalProperties;
    const other = typeof others === "object" ? { [ADDED_VALUE]: inner(others) } : {};
    return { ...Object.fromEntries(fields), ...other, ...ADDED };
  }
  if (schema.type === "string") return schema.format === "date-time" ? new Date(0).toISOString() : "text";
  return { number: 1, integer: 1, boolean: true }[schema.type ?? ""] ?? null;
}

/** A success of an operation in each media type and status that the OpenAPI document has, from a later version. */
export function laterResponsesOf(name: string): (() => Response)[] {
  const responses = Object.entries(operations.get(name)!.responses).filter(([status]) => /^2/.test(status));
  return responses.flatMap(([status, { content = {} }]) =>
    Object.entries(content).map(([type, { schema = {} }]) => () => {
      const init = { status: Number(status), headers: { "content-type": type } };
      if (type === "text/event-stream") return new Response(`${ADDED_EVENTS}${ADDED_EVENTS}`, init);
      return new Response(JSON.stringify(sampleOf(schema)), init);
    }),
  );
}
