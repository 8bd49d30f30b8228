import assert from "node:assert/strict";
import { test } from "node:test";
import { loadedModules } from "../test/loaded-modules.ts";

const { openMarket } = await import("../test/market.ts");

/** Fastify's compilers of schemas, and packages that load at their first use. */
const NOT_AT_START =
  /\/node_modules\/(ajv|ajv-formats|@fastify\/(ajv|fast-json-stringify)-compiler|openid-client|tar-stream|pg-copy-streams|marked|otplib|sharp|stripe|pdfkit)\//;

test("a start and a request: load no package that they do not use", async () => {
  const market = await openMarket();
  const user = await market.createUser();
  assert.equal((await user.get("/v1/products")).status, 200);
  await market.close();
  assert.ok(
    loadedModules.some((url) => url.includes("/node_modules/fastify/")),
    "Fastify is loaded",
  );
  assert.deepEqual(
    loadedModules.filter((url) => NOT_AT_START.test(url)),
    [],
  );
});
