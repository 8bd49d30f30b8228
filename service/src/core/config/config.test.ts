import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { after, suite, test } from "node:test";
import { ConfigError, countConnections, readConfig } from "./config.ts";

const folder = mkdtempSync(join(tmpdir(), "stoa-config-"));
after(() => rmSync(folder, { recursive: true }));

const read = (variables: Record<string, string>) => readConfig({ STOA_DATA_DIR: folder, ...variables });
const KEYS = {
  STOA_MASTER_KEYS: `1:${Buffer.alloc(32, 1).toString("base64")}`,
  STOA_SESSION_KEYS: `1:${Buffer.alloc(32, 2).toString("base64")}`,
};

test("several mistakes: one error with all of them", () => {
  const mistakes = { PORT: "x", STOA_ROLES: "api,boss", GITHUB_CLIENT_ID: "a", REDIS_URL: "http://a" };
  assert.throws(
    () => read(mistakes),
    (error) =>
      error instanceof ConfigError &&
      ["PORT", "STOA_ROLES", "GITHUB_CLIENT_SECRET", "REDIS_URL"].every((name) =>
        error.message.includes(name),
      ),
  );
});

test("secrets: created once in the data folder, but not with DATABASE_URL or in production", () => {
  assert.deepEqual(read({}).masterKeys, read({}).masterKeys);
  assert.deepEqual(read({}).sessionKeys, read({}).sessionKeys);
  for (const place of [
    { DATABASE_URL: "postgres://localhost/stoa" },
    { STOA_ENVIRONMENT: "production", STOA_MAIL: "off" },
  ]) {
    assert.throws(() => read(place), /STOA_MASTER_KEYS must be set[\s\S]*STOA_SESSION_KEYS must be set/);
    assert.deepEqual(read({ ...place, ...KEYS }).sessionKeys, [Buffer.alloc(32, 2)]);
  }
});

test("two master keys with one id: refused", () => {
  const twice = `${KEYS.STOA_MASTER_KEYS},1:${Buffer.alloc(32, 3).toString("base64")}`;
  assert.throws(() => read({ ...KEYS, STOA_MASTER_KEYS: twice }), /STOA_MASTER_KEYS names two keys alike/);
});

test("moderation: on in production, off in a test environment unless enabled", () => {
  const moderation = (variables: Record<string, string>) => read({ ...KEYS, ...variables }).moderation;
  const production = { STOA_ENVIRONMENT: "production", STOA_MAIL: "off" };
  assert.deepEqual([moderation({}), moderation({ STOA_MODERATION: "on" })], [false, true]);
  assert.deepEqual(
    [moderation(production), moderation({ ...production, STOA_MODERATION: "off" })],
    [true, false],
  );
});

suite("STRIPE_SECRET_KEY", () => {
  const webhook = { STRIPE_WEBHOOK_SECRET: "whsec_a" };
  const production = { STOA_ENVIRONMENT: "production", STOA_MAIL: "off", ...KEYS };
  const keyOf = (STRIPE_SECRET_KEY: string, place: Record<string, string> = {}) =>
    read({ ...webhook, ...place, STRIPE_SECRET_KEY }).stripe?.secretKey;

  test("of the environment's mode: accepted", () => {
    for (const key of ["sk_test_a", "rk_test_a"]) assert.equal(keyOf(key), key);
    for (const key of ["sk_live_a", "rk_live_a"]) assert.equal(keyOf(key, production), key);
  });

  test("of the other mode or publishable: refused without showing the key", () => {
    for (const [key, place, mend] of [
      ["sk_live_secret", {}, "sk_test_ or rk_test_ where STOA_ENVIRONMENT is test"],
      ["rk_live_secret", {}, "sk_test_"],
      ["pk_test_secret", {}, "sk_test_"],
      ["sk_test_secret", production, "sk_live_ or rk_live_ where STOA_ENVIRONMENT is production"],
    ] as const)
      assert.throws(
        () => keyOf(key, place),
        ({ message }: Error) => message.includes(mend) && !message.includes(key),
      );
  });
});

test("STOA_FEES: 10 % by default, 0 to 100 %", () => {
  const fee = (STOA_FEES: string) => read({ STOA_FEES }).feeBasisPoints;
  assert.deepEqual(["", "0", "250", "10000"].map(fee), [1_000, 0, 250, 10_000]);
  for (const wrong of ["-1", "10001", "2.5", "10 %"]) assert.throws(() => fee(wrong), /STOA_FEES/);
});

test("STOA_PAYOUT_SCHEDULE: weekly by default", () => {
  const schedule = (STOA_PAYOUT_SCHEDULE: string) => read({ STOA_PAYOUT_SCHEDULE }).payoutSchedule;
  assert.deepEqual(["", "daily", "monthly", "off"].map(schedule), ["weekly", "daily", "monthly", null]);
  assert.throws(
    () => schedule("hourly"),
    /STOA_PAYOUT_SCHEDULE is "hourly"; it takes off, daily, weekly, monthly/,
  );
});

suite("STOA_TRUST_PROXY", () => {
  test("addresses and networks: accepted", () => {
    const { trustProxy } = read({ STOA_TRUST_PROXY: "10.0.0.0/8, 192.0.2.1,2001:db8::/32" });
    assert.deepEqual(trustProxy, ["10.0.0.0/8", "192.0.2.1", "2001:db8::/32"]);
  });

  for (const wrong of ["10.0.0.0/33", "2001:db8::/129", "10.0.0.0/", "proxy.example", "true"])
    test(`${wrong}: refused`, () => assert.throws(() => read({ STOA_TRUST_PROXY: wrong }), /is not known/));
});

suite("STOA_PUBLIC_URL", () => {
  for (const given of ["https://stoa.example/", "HTTPS://Stoa.Example:443"])
    test(`${given}: normalized to the browsers' origin`, () =>
      assert.equal(read({ STOA_PUBLIC_URL: given }).publicUrl, "https://stoa.example"));

  for (const wrong of [
    "https://stoa.example/shop",
    "https://stoa.example/?a=b",
    "https://me:pass@stoa.example",
    "ftp://stoa.example",
  ])
    test(`${wrong}: refused`, () => assert.throws(() => read({ STOA_PUBLIC_URL: wrong }), /STOA_PUBLIC_URL/));
});

suite("STOA_PUBLIC_URL in production", () => {
  const production = (more: Record<string, string>) =>
    read({ STOA_ENVIRONMENT: "production", STOA_MAIL: "off", ...KEYS, ...more });

  test("must begin with https://, except for loopback", () => {
    for (const url of ["http://stoa.example", "http://192.168.1.5:4000", "http://127.0.0.1.evil.example"])
      assert.throws(() => production({ STOA_PUBLIC_URL: url }), /STOA_PUBLIC_URL .* must begin with https:/);
    for (const url of ["https://stoa.example", "http://localhost:4000", "http://127.0.0.1:4000"])
      assert.equal(production({ STOA_PUBLIC_URL: url }).publicUrl, url);
  });

  test("required if other machines reach the service", () => {
    for (const HOST of ["0.0.0.0", "::", "192.168.1.5"])
      assert.throws(() => production({ HOST }), /STOA_PUBLIC_URL must be set in production when HOST is/);
    for (const HOST of ["127.0.0.1", "::1", "localhost"]) assert.equal(production({ HOST }).publicUrl, null);
  });

  test("in a test environment: plain HTTP is accepted", () =>
    assert.equal(read({ STOA_PUBLIC_URL: "http://stoa.lan" }).publicUrl, "http://stoa.lan"));
});

suite("STOA_TAX_RATES", () => {
  test("percentages by country with at most two decimals: accepted", () => {
    const { taxRates, taxInclusive } = read({
      STOA_TAX_RATES: "DE=19, FR=5.5,CH=8.10,US=0,JP=10",
      STOA_TAX_INCLUSIVE: "on",
    });
    assert.deepEqual(Object.fromEntries(taxRates), { DE: 1_900, FR: 550, CH: 810, US: 0, JP: 1_000 });
    assert.equal(taxInclusive, true);
  });

  test("unset: no tax", () => {
    const { taxRates, taxInclusive } = read({});
    assert.deepEqual([taxRates.size, taxInclusive], [0, false]);
  });

  for (const wrong of [
    "DE",
    "DE=",
    "DE=19.999",
    "DE=-1",
    "DE=100.01",
    "DE=1e1",
    "de=19",
    "XX=19",
    "DE=1,DE=2",
    "19",
  ])
    test(`${wrong}: refused with the reason`, () =>
      assert.throws(() => read({ STOA_TAX_RATES: wrong }), /STOA_TAX_RATES: "[^"]*" /));

  test("several mistakes: all reported", () => {
    assert.throws(
      () => read({ STOA_TAX_RATES: "XX=1,DE=x", STOA_TAX_INCLUSIVE: "maybe" }),
      /"XX=1"[\s\S]*"DE=x"[\s\S]*STOA_TAX_INCLUSIVE/,
    );
  });
});

suite("settings of webhooks", () => {
  test("by default: no egress addresses, prefix X-Service-", () => {
    const { egressAddresses, webhookHeaderPrefix } = read({});
    assert.deepEqual([egressAddresses, webhookHeaderPrefix], [[], "X-Service-"]);
  });

  test("the operator's addresses and prefix: used", () => {
    const config = read({
      STOA_EGRESS_ADDRESSES: "192.0.2.1, 198.51.100.0",
      STOA_WEBHOOK_HEADER_PREFIX: "X-Acme-",
    });
    assert.deepEqual(config.egressAddresses, ["192.0.2.1", "198.51.100.0"]);
    assert.equal(config.webhookHeaderPrefix, "X-Acme-");
  });

  for (const wrong of [
    "X-Acme",
    "-X-",
    "X Acme-",
    "1-",
    "webhook-",
    "Webhook-",
    `${"x".repeat(40)}-`,
    "X-\r\nA-",
  ])
    test(`STOA_WEBHOOK_HEADER_PREFIX ${JSON.stringify(wrong)}: refused`, () =>
      assert.throws(() => read({ STOA_WEBHOOK_HEADER_PREFIX: wrong }), /STOA_WEBHOOK_HEADER_PREFIX/));

  for (const wrong of ["example.com", "2001:db8::1", "192.0.2.0/24", "192.0.2"])
    test(`STOA_EGRESS_ADDRESSES ${wrong}: refused`, () =>
      assert.throws(() => read({ STOA_EGRESS_ADDRESSES: wrong }), /STOA_EGRESS_ADDRESSES/));
});

suite("OTEL_* variables", () => {
  const COLLECTOR = { OTEL_EXPORTER_OTLP_ENDPOINT: "https://who:SECRET@collector.example:4318/PATH" };

  test("with a destination: telemetry is on; only origins are shown", () => {
    const origin = "https://collector.example:4318";
    assert.deepEqual(read(COLLECTOR).telemetry, { serviceName: "stoa", traces: origin, metrics: origin });
    assert.deepEqual(read({ OTEL_TRACES_EXPORTER: "otlp", OTEL_METRICS_EXPORTER: "none" }).telemetry, {
      ...{ serviceName: "stoa", traces: "http://localhost:4318", metrics: "none" },
    });
    assert.equal(
      read({ OTEL_TRACES_EXPORTER: "otlp", OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "grpc" }).telemetry?.traces,
      "http://localhost:4317",
    );
    const own = { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: "http://metrics:1" };
    const { traces, metrics } = read({ ...COLLECTOR, ...own }).telemetry!;
    assert.deepEqual([traces, metrics], [origin, "http://metrics:1"]);
  });

  for (const [name, given] of Object.entries({
    "only a service name": { OTEL_SERVICE_NAME: "shop", OTEL_RESOURCE_ATTRIBUTES: "a=b" },
    OTEL_SDK_DISABLED: { ...COLLECTOR, OTEL_SDK_DISABLED: "true" },
    "no exporter": { ...COLLECTOR, OTEL_TRACES_EXPORTER: "none", OTEL_METRICS_EXPORTER: "none" },
  }))
    test(`${name}: telemetry is off`, () => assert.equal(read(given).telemetry, null));

  test("a service name of the operator: used", () => {
    for (const named of [
      { OTEL_SERVICE_NAME: "shop" },
      { OTEL_RESOURCE_ATTRIBUTES: "a=b,service.name=shop" },
    ])
      assert.equal(read({ ...COLLECTOR, ...named }).telemetry?.serviceName, null);
  });

  test("invalid values: refused, each reported once", () => {
    const wrong = {
      OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318",
      OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: "udp",
      OTEL_TRACES_EXPORTER: "zipkin",
    };
    assert.throws(
      () => read(wrong),
      ({ message }: Error) =>
        message.split("\n").length === 4 &&
        ["OTLP_ENDPOINT", "METRICS_PROTOCOL", "TRACES_EXPORTER"].every((name) => message.includes(name)),
    );
  });
});

test("DATABASE_URL: may name several servers; DATABASE_DIRECT_URL requires it", () => {
  const url = "postgres://stoa@one:5432,two:5432/stoa?target_session_attrs=read-write";
  const config = read({ ...KEYS, DATABASE_URL: url, DATABASE_DIRECT_URL: "postgres://three/stoa" });
  assert.deepEqual([config.databaseUrl, config.databaseDirectUrl], [url, "postgres://three/stoa"]);
  assert.throws(
    () => read({ DATABASE_DIRECT_URL: "postgres://three/stoa" }),
    /DATABASE_DIRECT_URL needs DATABASE_URL/,
  );
  assert.throws(
    () => read({ ...KEYS, DATABASE_URL: "postgres://one,two:x/stoa" }),
    /DATABASE_URL has the host "two:x"/,
  );
});

suite("STOA_PROCESSES", () => {
  const external = { ...KEYS, DATABASE_URL: "postgres://localhost/stoa" };

  test("unset: one process; auto: the number of cores, at most what the embedded PostgreSQL allows", () => {
    assert.equal(read({}).processes, 1);
    assert.equal(read({ STOA_PROCESSES: "auto" }).processes, Math.min(15, availableParallelism()));
    assert.equal(read({ STOA_PROCESSES: "auto", STOA_ROLES: "worker" }).processes, 1);
  });

  test("no whole number, or too many: the error names the setting and the range", () => {
    for (const STOA_PROCESSES of ["0", "-1", "1.5", "many", "16"])
      assert.throws(
        () => read({ STOA_PROCESSES }),
        /STOA_PROCESSES is ".*"; it takes .* from 1 to 15 .*auto/,
      );
    assert.throws(() => read({ ...external, STOA_PROCESSES: "65" }), /from 1 to 64, or auto/);
    assert.throws(() => read({ STOA_PROCESSES: "2", STOA_ROLES: "worker" }), /STOA_ROLES has no api/);
  });

  test("the pools of all processes: fit into the connections of the embedded PostgreSQL", () => {
    const MAX_CONNECTIONS = 100;
    for (let processes = 2; processes <= 15; processes++) {
      const config = read({ STOA_PROCESSES: String(processes), STOA_DATABASE_CONNECTIONS: "500" });
      assert.ok(config.databaseConnections >= 2);
      assert.ok(countConnections(config) < MAX_CONNECTIONS - 10);
    }
    const own = read({ ...external, STOA_PROCESSES: "4", STOA_DATABASE_CONNECTIONS: "500" });
    assert.equal(own.databaseConnections, 500);
  });
});
