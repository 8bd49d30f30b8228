import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { loadedModules } from "../../../test/loaded-modules.ts";
import { until } from "../../../test/until.ts";

const { openMarket } = await import("../../../test/market.ts");
const { sendsTo, startCollector } = await import("../../../test/collector.ts");

const isSdkModule = (url: string) => /@opentelemetry\/(?!api\/)/.test(url);

let collector: Awaited<ReturnType<typeof startCollector>>;
let market: Awaited<ReturnType<typeof openMarket>>;
before(async () => {
  collector = await startCollector();
  market = await openMarket();
});
after(async () => {
  await market.close();
  await collector.close();
});

const request = async () => assert.equal((await market.as(null).get("/v1/openapi.json")).status, 200);

test("no destination: the SDK is not loaded; with a destination it is", async () => {
  await request();
  assert.ok(
    loadedModules.some((url) => url.includes("@opentelemetry/api/")),
    "the API is",
  );
  assert.deepEqual(loadedModules.filter(isSdkModule), []);
  const { stop } = await sendsTo(collector, { OTEL_SDK_DISABLED: "true" });
  await stop();
  assert.deepEqual(loadedModules.filter(isSdkModule), []);
});

test("a collector that refuses or never answers: one log line, and nothing waits for it", async () => {
  collector.behaviour = "refuse";
  const { logs, stop } = await sendsTo(collector, {
    OTEL_SDK_DISABLED: "false",
    OTEL_LOG_LEVEL: "error",
    OTEL_METRICS_EXPORTER: "none",
  });
  assert.ok(loadedModules.some(isSdkModule));
  for (let refusal = 1; refusal <= 5; refusal++) {
    await request();
    await until(`refusal ${refusal}`, () => collector.bodies[refusal - 1]);
  }
  await until("a line", () => logs[0]);
  assert.deepEqual(
    logs.map((line) => JSON.parse(line)).map(({ level, reason }) => [level, reason]),
    [[40, "400"]],
  );
  collector.behaviour = "hang";
  await request();
  await until("a request that hangs", () => collector.bodies[5]);
  await request();
  await stop();
  assert.ok(collector.hanging() > 0, "the end came before the SDK's own patience was at its end");
});
