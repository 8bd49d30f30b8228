import type { Endpoint } from "@stoa/contract";
import type { Stoa } from "../src/index.ts";

/** An id of the right form for each parameter of a path; most name nothing. */
const ids: Record<string, string> = { version: "1.0.0", stepId: "draft" };
const png = new File([Buffer.from("iVBORw0KGgo=", "base64")], "picture.png", { type: "image/png" });

/** Queries with a field that is required. */
const queries: Record<string, object> = { "sales.quote": { price: 10, countries: "DE" } };

/** Arguments of the method without its options: the example body, and a query of defaults. */
export function argumentsFor({ name, path, request, query }: Endpoint): unknown[] {
  const pathParts = [...path.matchAll(/:(\w+)/g)].map(([, name]) => ids[name!] ?? "x1");
  const hasQuery = Object.keys(query.shape).length > 0;
  return [...pathParts, ...bodyFor(request), ...(hasQuery ? [queries[name] ?? {}] : [])];
}

function bodyFor(request: Endpoint["request"]): unknown[] {
  if (request.kind === "none") return [];
  if (request.kind === "raw") return [{ content: "{}", type: request.types[0] }];
  return request.kind === "upload" ? [{ file: png, ...request.example }] : [request.example];
}

type Method = (...args: unknown[]) => unknown;

/** The method of an operation, bound to its resource. */
export function methodOf(stoa: Stoa, name: string): Method {
  const path = name.split(".");
  const last = path.pop()!;
  const resource = path.reduce<unknown>((object, part) => (object as Record<string, unknown>)[part], stoa);
  return (resource as Record<string, Method>)[last]!.bind(resource);
}

/** Awaits a call, reads the first page of a list, or the first event of a stream. */
export async function finish(result: unknown, abort: AbortController): Promise<unknown> {
  if (typeof (result as { page?: unknown }).page === "function")
    return (result as { page(): Promise<unknown> }).page();
  if (!(Symbol.asyncIterator in (result as object))) return result;
  setTimeout(() => abort.abort(), 200);
  const first = (result as AsyncGenerator).next();
  const { value } = await first.catch((error) => {
    if (error.name !== "AbortError") throw error;
    return { value: null };
  });
  return value;
}
