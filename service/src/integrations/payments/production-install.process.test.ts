import assert from "node:assert/strict";
import { registerHooks } from "node:module";
import { test } from "node:test";
import { openMarket } from "../../../test/market.ts";

/** The installed packages after `npm ci --omit=dev --workspace=@stoa/service --include-workspace-root`. */
function uninstallFakePayments() {
  return registerHooks({
    resolve(specifier, context, next) {
      if (specifier === "@stoa/fake-payments")
        throw Object.assign(new Error(`Cannot find package ${specifier}`), { code: "ERR_MODULE_NOT_FOUND" });
      return next(specifier, context);
    },
  });
}

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
