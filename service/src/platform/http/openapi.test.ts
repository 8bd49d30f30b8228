import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, suite, test } from "node:test";
import {
  api,
  callbackTypes,
  type Endpoint,
  endpoints,
  errorCatalogue,
  errorCodes,
  errorsOf,
  eventData,
  eventTypes,
  isRepeatable,
  permissions,
  statusOf,
} from "@stoa/contract";
import { type Market, openMarket } from "../../../test/market.ts";
import { openAiStatusOf } from "./openai-error.ts";

// biome-ignore lint/suspicious/noExplicitAny: a document whose parts are asserted one by one
type Json = any;

let market: Market;
let served: Json;
before(async () => {
  market = await openMarket();
  served = (await market.as(null).get("/v1/openapi.json")).body;
});
after(() => market.close());

const operationOf = ({ path, method }: Endpoint) =>
  served.paths[path.replace(/:(\w+)/g, "{$1}")]?.[method.toLowerCase()];

const contentOf = (endpoint: Endpoint) =>
  operationOf(endpoint).requestBody.content[
    endpoint.request.kind === "upload" ? "multipart/form-data" : "application/json"
  ];
/** The required fields beside the file of an upload. */
const requiredText = ({ required = [] }: Json): string[] =>
  required.filter((name: string) => name !== "file");

/** Every object inside the document, with its path. */
function* walk(value: Json, path = "#"): Generator<[path: string, value: Json]> {
  if (typeof value !== "object" || value === null) return;
  yield [path, value];
  for (const [key, item] of Object.entries(value)) yield* walk(item, `${path}/${key}`);
}

/** OpenAI's names for the answers of its endpoints. */
const wordsOf: Record<string, string> = {
  "openai.completions.create": "chat.completion",
  "openai.models.list": "list",
  "openai.models.get": "model",
};

const at = (pointer: string) =>
  pointer
    .slice(2)
    .split("/")
    .reduce((value: Json, key) => value?.[key.replaceAll("~1", "/").replaceAll("~0", "~")], served);
const resolved = (schema: Json): Json => (schema.$ref ? at(schema.$ref) : schema);

suite("the OpenAPI document", () => {
  test("needs no credential, and equals the committed one except for the server's address", async () => {
    const file = new URL("../../../../docs/openapi.gen.json", import.meta.url);
    const committed = JSON.parse(await readFile(file, "utf8"));
    assert.deepEqual(served.servers, [{ url: `${market.origin}/v1` }]);
    assert.deepEqual(committed.servers, [{ url: "/v1" }]);
    const anywhere = JSON.parse(JSON.stringify(served).replaceAll(market.origin, ""));
    assert.deepEqual(anywhere, committed);
  });

  test("has each endpoint of the contract once, and no other", () => {
    const parts = Object.values(served.paths).flatMap((path: Json) => Object.values(path) as Json[]);
    const names = parts.flatMap(({ operationId }) => operationId ?? []);
    assert.deepEqual(names.sort(), endpoints.map(({ name }) => name).sort());
    assert.equal(new Set(names).size, names.length);
    assert.equal(served.openapi, "3.1.1");
  });

  test("operation ids: each is the endpoint's place in `api`", () => {
    const pathIn = (id: string) => id.split(".").reduce<Json>((tree, name) => tree?.[name], api);
    const misplaced = endpoints.filter((endpoint) => pathIn(endpoint.name) !== endpoint);
    assert.deepEqual(
      misplaced.map(({ name }) => name),
      [],
    );
  });

  test("has no dangling reference and no unused schema", () => {
    const used = new Set<string>();
    for (const [path, value] of walk(served)) {
      if (typeof value.$ref !== "string") continue;
      assert.ok(at(value.$ref), `${path} refers to ${value.$ref}`);
      used.add(value.$ref);
    }
    for (const name of Object.keys(served.components.schemas)) {
      assert.ok(used.has(`#/components/schemas/${name}`), `${name} is used by nothing`);
    }
  });

  test("has a description of each tag", () => {
    const described = new Set(
      served.tags.filter(({ description }: Json) => description).map(({ name }: Json) => name),
    );
    for (const { tag, name } of endpoints) assert.ok(described.has(tag), `${tag} of ${name}`);
  });
});

for (const endpoint of endpoints) {
  suite(`${endpoint.name} in the OpenAPI document`, () => {
    test("has a summary, its tag and its permission", () => {
      const operation = operationOf(endpoint);
      assert.equal(operation.summary, endpoint.summary);
      assert.ok(endpoint.summary.length > 5);
      assert.deepEqual(operation.tags, [endpoint.tag]);
      const { access } = endpoint;
      const session = [{ sessionToken: [] }, { sessionCookie: [] }];
      const looksForSession = endpoint.errors.includes("INVALID_SESSION");
      if (access.who === "public")
        return assert.deepEqual(operation.security, looksForSession ? session : []);
      const isForPeople = access.who === "session" || access.who === "admin";
      assert.deepEqual(
        operation.security,
        isForPeople
          ? session
          : [
              { bearer: [] },
              { oauth2: access.permission === null ? [] : [access.permission] },
              { apiKeyInQuery: [] },
              ...session,
            ],
      );
      if (isForPeople) assert.match(operation.description, /session/);
      else
        assert.match(
          operation.description,
          access.permission ? new RegExp(`\`${access.permission}\``) : /any credential/,
        );
    });

    test("has each parameter of path and query with a schema", () => {
      const { parameters } = operationOf(endpoint);
      const named = (place: string) =>
        parameters.filter((parameter: Json) => parameter.in === place).map(({ name }: Json) => name);
      const inPath = [...endpoint.path.matchAll(/:(\w+)/g)].map(([, name]) => name);
      assert.deepEqual(named("path"), inPath);
      assert.deepEqual(named("query"), Object.keys(endpoint.query.shape));
      assert.equal(named("header").includes("Idempotency-Key"), isRepeatable(endpoint));
      assert.equal(named("header").includes("If-Match"), endpoint.supportsIfMatch);
      for (const { name, schema, required, in: place } of parameters) {
        assert.ok(schema.type ?? schema.enum ?? schema.$ref ?? schema.anyOf, `${name} has a type`);
        if (place === "path") assert.equal(required, true);
      }
    });

    const { request, response } = endpoint;
    if (response.kind === "events")
      test("has the media type of a stream, and how to resume it", () => {
        const { responses, parameters } = operationOf(endpoint);
        assert.deepEqual(Object.keys(responses[statusOf(endpoint)].content), ["text/event-stream"]);
        assert.ok(parameters.some((parameter: Json) => parameter.name === "Last-Event-ID"));
      });
    else if (response.kind === "file")
      test("has the media types of the returned file", () => {
        const { content } = operationOf(endpoint).responses[statusOf(endpoint)];
        assert.deepEqual(Object.keys(content), response.types);
      });
    else if (response.kind === "foreign")
      test("has the schema of its answer, which is the whole body", () => {
        const { responses } = operationOf(endpoint);
        const { schema } = responses[statusOf(endpoint)].content["application/json"];
        assert.equal(resolved(schema).properties.object.const, wordsOf[endpoint.name]);
        assert.equal(304 in responses, endpoint.method === "GET");
      });
    else
      test("has the schema of its answer, in the envelope", () => {
        const operation = operationOf(endpoint);
        const { schema } = operation.responses[statusOf(endpoint)].content["application/json"];
        assert.deepEqual(schema.required, ["success", "data", "meta"]);
        const { data, meta } = schema.properties;
        const isList = response.kind === "list";
        assert.equal(data.type === "array", isList);
        const item = resolved(isList ? data.items : data);
        assert.ok(Object.keys(item.properties).length > 0);
        const wanted = isList ? ["page", "limit", "total"] : ["timestamp", "request_id"];
        for (const field of wanted) assert.ok(resolved(meta).properties[field], `meta has ${field}`);
        const accepted = isList ? null : response.accepted;
        assert.equal(202 in operation.responses, accepted !== null);
        const takesPrefer = operation.parameters.some(({ name }: Json) => name === "Prefer");
        const isPreferable = accepted?.kind === "background" || accepted?.supportsPreferWait === true;
        assert.equal(takesPrefer, isPreferable);
        assert.equal(304 in operation.responses, endpoint.method === "GET");
      });

    test("has each possible error under its status, with an example", () => {
      const { responses } = operationOf(endpoint);
      for (const code of errorsOf(endpoint)) {
        const status = response.kind === "foreign" ? openAiStatusOf(code) : errorCatalogue[code].status;
        const { content } = responses[status];
        const { schema, examples } = content["application/json"];
        const shape = response.kind === "foreign" ? "OpenAiError" : "Failure";
        assert.equal(schema.$ref, `#/components/schemas/${shape}`);
        assert.equal(examples[code].value.error.code, code);
      }
      const documented = Object.values(responses).flatMap(({ content }: Json) =>
        Object.keys(content?.["application/json"]?.examples ?? {}),
      );
      assert.deepEqual(documented.sort(), errorsOf(endpoint).sort());
    });

    if (request.kind === "json" || request.kind === "upload") {
      const schemaOfFields = request.kind === "json" ? request.body : request.fields;
      test("has the schema of its body, with a valid example", () => {
        const { schema, example = request.example } = contentOf(endpoint);
        const fields = resolved(schema);
        const { file, ...texts } = fields.properties;
        assert.deepEqual(Object.keys(texts).sort(), Object.keys(schemaOfFields.shape).sort());
        assert.equal(file?.format, request.kind === "upload" ? "binary" : undefined);
        // OpenAI adds fields all the time.
        const unknown = response.kind === "foreign" ? {} : false;
        assert.deepEqual(fields.additionalProperties, unknown, "unknown fields are refused");
        const result = schemaOfFields.safeParse(example);
        assert.ok(result.success, result.error?.message);
        for (const name of requiredText(fields)) assert.ok(name in example, `the example lacks ${name}`);
      });

      test("requires no field that the schema does not require", () => {
        const { schema } = contentOf(endpoint);
        const needed = Object.entries(schemaOfFields.shape)
          .filter(([, field]) => !field.safeParse(undefined).success)
          .map(([name]) => name);
        assert.deepEqual(requiredText(resolved(schema)).sort(), needed.sort());
      });
    } else if (request.kind === "raw") {
      test("has the media types of the accepted file", () =>
        assert.deepEqual(Object.keys(operationOf(endpoint).requestBody.content), request.types));
    } else {
      test("has no body", () => assert.equal(operationOf(endpoint).requestBody, undefined));
    }
  });
}

for (const type of eventTypes)
  test(`${type}: a webhook of the OpenAPI document with its data and recipient`, () => {
    const { summary, security, requestBody } = served.webhooks[type].post;
    assert.match(summary, /\. Sent to /);
    assert.deepEqual(security, []);
    const event = resolved(requestBody.content["application/json"].schema);
    assert.deepEqual(event.required, ["id", "type", "created", "data"]);
    assert.equal(event.properties.type.const, type);
    const [[noun, schema]] = Object.entries<Json>(event.properties.data.properties) as [[string, Json]];
    assert.deepEqual([noun], Object.keys(eventData[type].shape));
    assert.ok(type === "test" || Object.keys(schema.properties).length > 1, noun);
  });

for (const type of callbackTypes)
  test(`${type}: a webhook of the OpenAPI document with its execution`, () => {
    const event = resolved(served.webhooks[type].post.requestBody.content["application/json"].schema);
    assert.equal(event.properties.type.const, type);
    assert.ok("outputUrl" in event.properties.data.properties.execution.properties);
  });

test("the webhooks of the OpenAPI document: the types of events and callbacks", () =>
  assert.deepEqual(Object.keys(served.webhooks), [...eventTypes, ...callbackTypes]));

test("OAuth 2.0: both flows, every scope and the URLs of the server's metadata", async () => {
  const { oauth2 } = served.components.securitySchemes;
  const metadata = (await market.as(null).get("/.well-known/oauth-authorization-server")).body;
  const { authorizationCode, clientCredentials } = oauth2.flows;
  assert.equal(authorizationCode.authorizationUrl, metadata.authorization_endpoint);
  for (const { tokenUrl } of [authorizationCode, clientCredentials])
    assert.equal(tokenUrl, metadata.token_endpoint);
  assert.deepEqual(Object.keys(authorizationCode.scopes).sort(), metadata.scopes_supported.toSorted());
  assert.deepEqual(Object.keys(clientCredentials.scopes), permissions);
});

test("every response: names its headers for request id, quota and retry", () => {
  for (const endpoint of endpoints) {
    const isLimited = endpoint.base === "/v1" && endpoint.access.who !== "public";
    const { responses } = operationOf(endpoint);
    for (const [status, response] of Object.entries<Json>(responses)) {
      if (status === "304") continue;
      const names = Object.keys(response.headers);
      assert.ok(names.includes("X-Request-Id"), endpoint.name);
      for (const name of names) assert.ok(resolved(response.headers[name]).schema, name);
      const hasQuota = names.includes("X-RateLimit-Remaining");
      if (Number(status) < 300 || status === "429") assert.equal(hasQuota, isLimited, endpoint.name);
      if (status === "429" || status === "503") assert.ok(names.includes("Retry-After"), endpoint.name);
    }
  }
});

test("the document's version: that of the package", async () => {
  const manifest = await readFile(new URL("../../../package.json", import.meta.url), "utf8");
  assert.equal(served.info.version, JSON.parse(manifest).version);
});

test("below /openai: OpenAI's error format, and nowhere else", () => {
  for (const { path, response, name } of endpoints)
    assert.equal(response.kind === "foreign", path.startsWith("/openai/"), name);
});

test("every error code: its own status class and a message that is a sentence", () => {
  for (const code of errorCodes) {
    const { status, message } = errorCatalogue[code];
    assert.ok(status >= 400 && status < 600, code);
    assert.match(message, /^[A-Z].*\.$/, code);
  }
});
