import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { type Endpoint, endpoints, errorsOf } from "@stoa/contract";
import { type Market, openMarket } from "@stoa/service/test/market.ts";
import { ApiError, Stoa } from "../src/index.ts";

let market: Market;
before(async () => {
  market = await openMarket({ config: { roles: { api: true, worker: false } } });
});
after(() => market.close());

/** An id of the right form for each parameter of a path; most name nothing. */
const ids: Record<string, string> = { version: "1.0.0", stepId: "draft" };
const png = new File([Buffer.from("iVBORw0KGgo=", "base64")], "picture.png", { type: "image/png" });

function argumentsFor({ path, request, query }: Endpoint): unknown[] {
  const pathParts = [...path.matchAll(/:(\w+)/g)].map(([, name]) => ids[name!] ?? "x1");
  const hasQuery = Object.keys(query.shape).length > 0;
  return [...pathParts, ...bodyFor(request), ...(hasQuery ? [{}] : [])];
}

function bodyFor(request: Endpoint["request"]): unknown[] {
  if (request.kind === "none") return [];
  if (request.kind === "raw") return [{ content: "{}", type: request.types[0] }];
  return request.kind === "upload" ? [{ file: png, ...request.example }] : [request.example];
}

type Method = (...args: unknown[]) => unknown;

/** The method of an operation, bound to its resource. */
function methodOf(stoa: Stoa, name: string): Method {
  const path = name.split(".");
  const last = path.pop()!;
  const resource = path.reduce<unknown>((object, part) => (object as Record<string, unknown>)[part], stoa);
  return (resource as Record<string, Method>)[last]!.bind(resource);
}

/** Awaits a call, reads the first page of a list, or the head of a stream. */
async function finish(result: unknown, abort: AbortController): Promise<void> {
  if (typeof (result as { page?: unknown }).page === "function")
    await (result as { page(): Promise<unknown> }).page();
  else if (Symbol.asyncIterator in (result as object)) {
    setTimeout(() => abort.abort(), 200);
    await (result as AsyncGenerator).next().catch((error) => {
      if (error.name !== "AbortError") throw error;
    });
  } else await result;
}

suite("every operation of the contract is a method of the SDK", () => {
  for (const endpoint of endpoints)
    test(`${endpoint.name}: sends ${endpoint.method} ${endpoint.base}${endpoint.path}`, async () => {
      const member = await market.createUser({ role: "admin" });
      const { key } = await market.createSession(member.userId, { secondFactor: true });
      const sent: string[] = [];
      const stoa = new Stoa({
        baseUrl: `${market.origin}/v1`,
        apiKey: key,
        maxRetries: 0,
        fetch: (input, init) => {
          sent.push(`${init?.method} ${new URL(String(input)).pathname}`);
          return fetch(input, init);
        },
      });
      const abort = new AbortController();
      const options = { signal: abort.signal };
      try {
        await finish(methodOf(stoa, endpoint.name)(...argumentsFor(endpoint), options), abort);
      } catch (error) {
        assert.ok(error instanceof ApiError, String(error));
        assert.ok((errorsOf(endpoint) as string[]).includes(error.code), `${error.code}: ${error.message}`);
        assert.ok(
          error.status !== 400 || ["upload", "raw"].includes(endpoint.request.kind) || /x1/.test(sent[0]!),
          error.message,
        );
      }
      const path = endpoint.path.replace(/:\w+/g, "[^/]+");
      assert.match(
        sent[0]!,
        new RegExp(`^${endpoint.method} /v1${endpoint.base === "/v1" ? "" : endpoint.base}${path}$`),
      );
    });
});
