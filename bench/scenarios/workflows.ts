import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createKeyAsOperator } from "@stoa/service/accounts/api-keys/keys.ts";
import { createUser } from "@stoa/service/accounts/people/users.ts";
import type { Context } from "@stoa/service/core/context.ts";
import { startEmbedded } from "@stoa/service/platform/db/embedded.ts";
import { GOOD_KEY } from "@stoa/service/test/provider-server.ts";
import { type Client, clientOf } from "../client.ts";
import type { Options } from "../options.ts";
import { atEnd, startScript } from "../processes.ts";
import { type Quantiles, quantilesOf } from "../quantile.ts";
import { comparedWithAim, ms, type Report } from "../report.ts";
import { startService, WITHOUT_LIMITS, withBase } from "../shop.ts";

const WARM_UP = 30;
const RUNS = 200;
const AT_ONCE = 32;
const TOGETHER = 640;
const STEPS = ["one", "two", "three"];
const TAKEOVERS = 3;
const AIMS = { engineMs: 6, perSecond: 250, takeoverMs: 1_500 };
const MODEL = "bench-model";

/** Runs of three calls, one at a time and in parallel, and the takeover from a killed worker. */
export async function measureWorkflows({ profile }: Options): Promise<Report> {
  const dataDir = await mkdtemp(join(tmpdir(), "stoa-bench-workflows-"));
  atEnd(() => rm(dataDir, { recursive: true, force: true }));
  const plansFile = join(dataDir, "plans.json");
  await writeFile(plansFile, JSON.stringify(WITHOUT_LIMITS));
  const database = await startEmbedded(dataDir);
  atEnd(() => database.stop());
  const startNode = (roles: string, profile?: string) =>
    startService(profile, { STOA_DATA_DIR: dataDir, STOA_PLANS_FILE: plansFile, STOA_ROLES: roles });
  const [providerUrl] = await startScript(new URL("../ai-provider.ts", import.meta.url), []).waitForLine(
    /^http.*/,
  );
  const key = await withBase(dataDir, { target: database.connection }, ({ ctx }) => openAccount(ctx));
  const node = await startNode("api,worker", profile);
  const buyer = { client: clientOf(node.origin, key), origin: node.origin, key };
  const times = await oneByOne(buyer, providerUrl!);
  const perSecond = await manyAtOnce(buyer, providerUrl!);
  await node.end();
  return reportOf({ ...times, perSecond, takeovers: await takeOvers(key, startNode) });
}

async function openAccount(ctx: Context): Promise<string> {
  const userId = await createUser(ctx, { email: "flows@bench.example", name: "Flows", plan: "enterprise" });
  const permissions = ["ai:execute", "products:write"] as const;
  return (await createKeyAsOperator(ctx, { userId, name: "bench", permissions: [...permissions] })).key;
}

interface Buyer {
  client: Client;
  origin: string;
  key: string;
}

const stepOf = (id: string, at: number) => ({
  ...{ id, type: "prompt", provider: "openai-compatible", model: MODEL, needs: STEPS.slice(at - 1, at) },
  messages: [{ role: "user", content: `A prompt of about the length that prompts have, for step ${id}.` }],
});

/** Three calls in sequence. Returns a function that runs it to its end. */
async function openWorkflow({ client, origin, key }: Buyer, baseUrl: string): Promise<() => Promise<string>> {
  const definition = {
    format: "workflow/1",
    input: { type: "object" },
    steps: STEPS.map(stepOf),
    result: "steps.three.output",
  };
  const { id } = await client.post<{ id: string }>("/v1/products", {
    ...{ title: "Three steps", type: "WORKFLOW", price: 5, content: JSON.stringify(definition) },
  });
  const stored = await client.post<{ id: string }>("/v1/ai/keys", {
    ...{ provider: "openai-compatible", name: "bench", key: GOOD_KEY, baseUrl },
  });
  const body = JSON.stringify({ apiKeys: { "openai-compatible": stored.id } });
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json", prefer: "wait=60" };
  return async () => {
    const reply = await fetch(`${origin}/v1/ai/workflows/${id}/execute`, { method: "POST", headers, body });
    const { data } = (await reply.json()) as { data: { status: string } };
    return data.status;
  };
}

async function mustComplete(run: () => Promise<string>): Promise<void> {
  const status = await run();
  if (status !== "completed") throw new Error(`a run was ${status}`);
}

/** Whole runs, and the difference to the same direct calls, in turn. */
async function oneByOne(buyer: Buyer, providerUrl: string): Promise<{ whole: Quantiles; engine: Quantiles }> {
  const run = await openWorkflow(buyer, providerUrl);
  const direct = clientOf(providerUrl, GOOD_KEY);
  const message = { model: MODEL, messages: stepOf("one", 0).messages };
  const whole: number[] = [];
  const engine: number[] = [];
  for (let n = -WARM_UP; n < RUNS; n++) {
    const begun = performance.now();
    for (const _ of STEPS) await direct.post("/chat/completions", message);
    const between = performance.now();
    await mustComplete(run);
    if (n < 0) continue;
    whole.push(performance.now() - between);
    engine.push(performance.now() - between - (between - begun));
  }
  return { whole: quantilesOf(whole), engine: quantilesOf(engine) };
}

async function manyAtOnce(buyer: Buyer, providerUrl: string): Promise<number> {
  const run = await openWorkflow(buyer, providerUrl);
  const begun = performance.now();
  let left = TOGETHER;
  const work = async () => {
    while (left-- > 0) await mustComplete(run);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return TOGETHER / ((performance.now() - begun) / 1000);
}

/** From the kill of a worker to another worker's repeat of its call. */
async function takeOvers(
  key: string,
  startNode: (roles: string) => ReturnType<typeof startService>,
): Promise<number[]> {
  const api = await startNode("api");
  const silent = createServer(() => {});
  await once(silent.listen(0, "127.0.0.1"), "listening");
  atEnd(async () => void silent.closeAllConnections());
  const baseUrl = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/v1`;
  const run = await openWorkflow({ client: clientOf(api.origin, key), origin: api.origin, key }, baseUrl);
  const times: number[] = [];
  for (let n = 0; n < TAKEOVERS; n++) {
    const doomed = await startNode("worker");
    const called = once(silent, "request");
    void run().catch(() => {});
    await called;
    const other = await startNode("worker");
    const again = once(silent, "request");
    const killed = performance.now();
    process.kill(doomed.pid, "SIGKILL");
    await again;
    times.push(performance.now() - killed);
    await other.end();
  }
  silent.close();
  await api.end();
  return times;
}

interface Figures {
  whole: Quantiles;
  engine: Quantiles;
  perSecond: number;
  takeovers: number[];
}

function reportOf({ whole, engine, perSecond, takeovers }: Figures): Report {
  const slowest = Math.max(...takeovers);
  return {
    columns: ["what", "figure", "aim", "met"],
    rows: [
      ["three calls in a row as a workflow, p50", `${ms(whole.p50)} ms`, "", ""],
      [
        "of that the engine's own, p50",
        ...comparedWithAim(`${ms(engine.p50)} ms`, `≤ ${AIMS.engineMs} ms`, engine.p50 <= AIMS.engineMs),
      ],
      ["of that the engine's own, p99", `${ms(engine.p99)} ms`, "", ""],
      [
        `runs of three calls, ${AT_ONCE} at a time`,
        ...comparedWithAim(`${perSecond.toFixed(0)}/s`, `≥ ${AIMS.perSecond}/s`, perSecond >= AIMS.perSecond),
      ],
      [
        "from kill -9 of a worker to the call of another",
        ...comparedWithAim(
          `${(slowest / 1000).toFixed(1)} s`,
          `≤ ${AIMS.takeoverMs / 1000} s`,
          slowest <= AIMS.takeoverMs,
        ),
      ],
    ],
    notes: [
      `From the request to its answer (\`Prefer: wait\`), entitlement, checks and sealing included; the provider is local and answers at once. The engine's own is what is left when the same three calls, made directly in turn, are taken off. A worker whose session lock is missing for 0.8 s counts as dead; without the lock, its lease ends after 10 s. Take-overs took ${takeovers.map((one) => (one / 1000).toFixed(1)).join(", ")} s.`,
    ],
  };
}
