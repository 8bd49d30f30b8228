import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { ConfigError, readConfig } from "./config.ts";
import { builtInPlans } from "./plan-config.ts";

const folder = mkdtempSync(join(tmpdir(), "stoa-plans-"));
after(() => rmSync(folder, { recursive: true }));

function readPlansFile(text: unknown) {
  const file = join(folder, "plans.json");
  writeFileSync(file, typeof text === "string" ? text : JSON.stringify(text));
  return readConfig({ STOA_PLANS_FILE: file, STOA_DATA_DIR: folder }).planConfig;
}

const problemsOf = (text: unknown): string => {
  try {
    readPlansFile(text);
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.message;
  }
  assert.fail("it was taken");
};

test("without a file: the plans of the specification", () => {
  const { plans } = readConfig({ STOA_DATA_DIR: folder }).planConfig;
  const quotas = Object.fromEntries(
    Object.entries(plans).map(([plan, offer]) => [
      plan,
      offer.quotas.map(({ requests, seconds }) => `${requests}/${seconds}`),
    ]),
  );
  assert.deepEqual(quotas, {
    free: ["100/3600"],
    pro: ["100/60", "1000/3600", "10000/86400"],
    business: ["1000/60", "100000/86400"],
    enterprise: ["10000/3600"],
  });
  assert.deepEqual(builtInPlans.failedCredentials, { requests: 100, seconds: 600 });
});

test("a file: changes only what it contains", () => {
  const planConfig = readPlansFile({
    plans: { free: { quotas: [{ requests: 7, seconds: 60 }] }, pro: { monthlyPrice: 19.5 } },
    guests: [{ requests: 1, seconds: 1 }],
  });
  assert.deepEqual(planConfig, {
    ...builtInPlans,
    plans: {
      ...builtInPlans.plans,
      free: { ...builtInPlans.plans.free, quotas: [{ requests: 7, seconds: 60 }] },
      pro: { ...builtInPlans.plans.pro, monthlyPrice: 19.5 },
    },
    guests: [{ requests: 1, seconds: 1 }],
  });
});

test("several mistakes: all reported with their path, together with those of other settings", () => {
  const file = join(folder, "wrong.json");
  const wrong = {
    currency: "DOLLARS",
    plans: {
      gold: {},
      free: { quotas: [{ requests: 0, seconds: 60 }] },
      pro: { quotas: [] },
      business: { price: 3 },
      enterprise: {
        quotas: [
          { requests: 1, seconds: 60 },
          { requests: 2, seconds: 60 },
        ],
      },
    },
    sessions: "many",
  };
  writeFileSync(file, JSON.stringify(wrong));
  assert.throws(
    () => readConfig({ STOA_PLANS_FILE: file, STOA_DATA_DIR: folder, PORT: "x" }),
    ({ message }: Error) => {
      for (const expected of [
        /PORT is "x"/,
        /STOA_PLANS_FILE \(.*wrong\.json\): currency: /,
        /gold/,
        /plans\.free\.quotas\.0\.requests: /,
        /plans\.pro\.quotas: /,
        /business: .*price/,
        /plans\.enterprise\.quotas: must not name the same seconds twice/,
        /sessions: /,
      ])
        assert.match(message, expected);
      return true;
    },
  );
});

test("a price with too many decimals for the currency: refused", () => {
  assert.match(
    problemsOf({ plans: { pro: { monthlyPrice: 9.999 } } }),
    /plans\.pro\.monthlyPrice: is not a valid amount in USD/,
  );
  assert.match(problemsOf({ currency: "JPY", plans: { pro: { monthlyPrice: 9.5 } } }), /JPY/);
});

test("the free plan: must stay free, because every account begins with it", () => {
  for (const monthlyPrice of [5, null])
    assert.match(problemsOf({ plans: { free: { monthlyPrice } } }), /plans\.free\.monthlyPrice: must be 0/);
});

test("a missing file or one that is not JSON: refused", () => {
  assert.match(problemsOf("{"), /STOA_PLANS_FILE .*is not readable as JSON/);
  assert.throws(() => readConfig({ STOA_PLANS_FILE: join(folder, "none"), STOA_DATA_DIR: folder }), /ENOENT/);
});
