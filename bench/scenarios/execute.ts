import { GOOD_KEY } from "@stoa/service/test/provider-server.ts";
import { clientOf } from "../client.ts";
import { cpuBetween, cpuOf } from "../cpu.ts";
import type { Options } from "../options.ts";
import { startScript } from "../processes.ts";
import { quantile } from "../quantile.ts";
import { against, ms, type Report } from "../report.ts";
import { openShop, type Shop } from "../shop.ts";

const WARM_UP = 100;
const CALLS = 600;
const AIM_MS = 5;
const MODEL = "bench-model";

/** A run of a bought prompt beside a direct call of the same provider, one after the other and in turn. */
export async function measureExecute(options: Options): Promise<Report> {
  const shop = await openShop(options);
  const { origin, buyers, products } = shop;
  const [providerUrl] = await startScript(new URL("../provider.ts", import.meta.url), []).says(/^http.*/);
  const client = clientOf(origin, buyers[0]!);
  const productId = products[0]!;
  // Bought by the list scenario already, perhaps.
  await client.post("/v1/purchases", { productId }).catch(() => {});
  const { data } = await client.get<{ data: { variables: { name: string }[] } }>(`/v1/products/${productId}`);
  const { id: apiKeyId } = await client.post<{ id: string }>("/v1/ai/keys", {
    ...{ provider: "openai-compatible", name: "bench", key: GOOD_KEY, baseUrl: providerUrl },
  });
  const wish = {
    productId,
    apiKeyId,
    variables: Object.fromEntries(data.variables.map(({ name }) => [name, "something"])),
    options: { model: MODEL },
  };
  const direct = clientOf(providerUrl, GOOD_KEY);
  const content = "A prompt of about the length that prompts have. ".repeat(12);
  const message = { model: MODEL, messages: [{ role: "user", content }] };
  const before = await computed(shop);
  const times = await interleave({
    direct: () => direct.post("/chat/completions", message),
    through: () => client.post("/v1/ai/execute", wish),
  });
  const after = await computed(shop);
  const calls = WARM_UP + CALLS;
  return reportOf(times, {
    node: cpuBetween(before.node, after.node) / calls,
    database: cpuBetween(before.database, after.database) / calls,
  });
}

const computed = async ({ pid, backends }: Shop) => ({
  node: cpuOf([pid]),
  database: cpuOf(await backends()),
});

interface Times {
  direct: number[];
  through: number[];
}

async function interleave(calls: Record<keyof Times, () => Promise<unknown>>): Promise<Times> {
  const times: Times = { direct: [], through: [] };
  for (let at = 0; at < WARM_UP + CALLS; at++) {
    for (const way of ["direct", "through"] as const) {
      const begun = performance.now();
      await calls[way]();
      if (at >= WARM_UP) times[way].push(performance.now() - begun);
    }
  }
  return times;
}

function reportOf({ direct, through }: Times, cpuMs: { node: number; database: number }): Report {
  const added = through.map((time, at) => time - direct[at]!);
  const row = (what: string, values: number[]) => {
    const sorted = values.toSorted((a, b) => a - b);
    return [what, ...[0.5, 0.95, 0.99].map((part) => ms(quantile(sorted, part)))];
  };
  const overhead = quantile(
    added.toSorted((a, b) => a - b),
    0.5,
  );
  return {
    columns: ["call", "p50 ms", "p95 ms", "p99 ms", "aim", "met"],
    rows: [
      [...row("the provider, directly", direct), "", ""],
      [...row("`POST /v1/ai/execute`", through), "", ""],
      [
        ...row("added, pair by pair", added),
        ...against("", `p50 ≤ ${AIM_MS} ms`, overhead <= AIM_MS).slice(1),
      ],
    ],
    notes: [
      `${CALLS} pairs, one call at a time, after ${WARM_UP} to warm up; the provider is local and answers at once. A run takes ${ms(cpuMs.node)} ms of computing in Node and ${ms(cpuMs.database)} ms in PostgreSQL.`,
    ],
  };
}
