import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { endpoints, errorsOf } from "@stoa/contract";
import { sampleOf } from "@stoa/service/test/full-size.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { ApiError, Stoa } from "../src/index.ts";
import { argumentsFor, finish, methodOf } from "./operations.ts";

let market: Market;
before(async () => {
  market = await openMarket({ config: { roles: { api: true, worker: false } } });
});
after(() => market.close());

async function createAdmin(): Promise<Client> {
  const { userId } = await market.createUser({ role: "admin" });
  return market.createSession(userId, { secondFactor: true });
}

/** The paths of all operations are tested, and the bodies of some against the service, whose checks take long. */
const answered = new Set(sampleOf(endpoints));
const refuse = async () =>
  Response.json({ success: false, error: { code: "NOT_FOUND", message: "Not found" } }, { status: 404 });

suite("every operation of the contract is a method of the SDK", () => {
  for (const endpoint of endpoints)
    test(`${endpoint.name}: sends ${endpoint.method} ${endpoint.base}${endpoint.path}`, async () => {
      const isAnswered = answered.has(endpoint);
      const { key } = isAnswered ? await createAdmin() : { key: "key" };
      const sent: string[] = [];
      const stoa = new Stoa({
        baseUrl: `${market.origin}/v1`,
        apiKey: key,
        maxRetries: 0,
        fetch: (input, init) => {
          sent.push(`${init?.method} ${new URL(String(input)).pathname}`);
          return isAnswered ? fetch(input, init) : refuse();
        },
      });
      const abort = new AbortController();
      const options = { signal: abort.signal };
      try {
        await finish(methodOf(stoa, endpoint.name)(...argumentsFor(endpoint), options), abort);
      } catch (error) {
        assert.ok(error instanceof ApiError, String(error));
        if (isAnswered)
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
