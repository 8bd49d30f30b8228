import assert from "node:assert/strict";
import { registerHooks } from "node:module";
import { test } from "node:test";
import { startFakeProvider } from "@stoa/fake-payments/server.ts";
import { memoryStore } from "@stoa/fake-payments/store.ts";
import { openMarket } from "../../../test/market.ts";

/** As after `npm ci --omit=dev --workspace=@stoa/service`. */
function uninstallFakePayments() {
  return registerHooks({
    resolve(specifier, context, next) {
      if (specifier.startsWith("@stoa/fake-payments/"))
        throw Object.assign(new Error(`Cannot find package ${specifier}`), { code: "ERR_MODULE_NOT_FOUND" });
      return next(specifier, context);
    },
  });
}

test("fake payment provider, STOA_ENVIRONMENT=production: does not start", async () => {
  await assert.rejects(
    startFakeProvider({ environment: "production", store: memoryStore(), now: () => new Date() }),
    /does not start in production/,
  );
});

test("service without @stoa/fake-payments: starts in production, and in test says what to install", async () => {
  const hooks = uninstallFakePayments();
  try {
    const market = await openMarket({ config: { environment: "production" } });
    assert.equal((await market.as(null).get("/healthz")).status, 200);
    await market.close();
    await assert.rejects(openMarket({}), /Install it with `npm ci`/);
  } finally {
    hooks.deregister();
  }
});
