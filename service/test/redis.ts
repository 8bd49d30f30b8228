import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { TestContext } from "node:test";
import { createClient } from "@redis/client";
import { COUNT_TIMEOUT_MS } from "../src/platform/http/fallback-counters.ts";
import { freePort } from "./free-port.ts";

/** A temporary Redis without persistence. */
export interface Redis {
  url: string;
  /** Shortens the remaining time of all rate limit windows. */
  forward(ms: number): Promise<void>;
  ping(): Promise<void>;
  /** Stops answering on open connections until `wake`. */
  hang(): void;
  wake(): void;
  stop(): Promise<void>;
}

const SERVER = "redis-server";

/** For `skip`: the reason why Redis is missing, or false. */
export const whyNoRedis: string | false = isInstalled()
  ? false
  : "redis-server is not installed here, so the limits were not tried against Redis";

function isInstalled(): boolean {
  try {
    execFileSync(SERVER, ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

const SHORTEN = `
for _, key in ipairs(redis.call('keys', 'stoa:limit:*')) do
  local left = redis.call('pttl', key) - tonumber(ARGV[1])
  if left <= 0 then redis.call('del', key) else redis.call('pexpire', key, left) end
end`;

export async function startRedis(port?: number): Promise<Redis> {
  const at = port ?? (await freePort());
  const server = spawn(SERVER, ["--port", String(at), "--bind", "127.0.0.1", "--save", ""], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const gone = once(server, "exit");
  for await (const line of createInterface({ input: server.stdout })) {
    if (line.includes("Ready to accept connections")) break;
  }
  assert.equal(server.exitCode, null, "redis-server ended before it was ready");
  server.stdout.resume();
  const url = `redis://127.0.0.1:${at}`;
  const client = createClient({ url });
  client.on("error", () => {});
  await client.connect();
  return {
    url,
    forward: async (ms) => void (await client.eval(SHORTEN, { arguments: [String(ms)] })),
    ping: async () => void (await client.ping()),
    hang: () => void server.kill("SIGSTOP"),
    wake: () => void server.kill("SIGCONT"),
    async stop() {
      client.destroy();
      server.kill("SIGKILL");
      await gone;
    },
  };
}

/** The deadlines after which requests are counted without Redis, which pass only when the test lets them: on a busy machine, Redis may answer after a real one. */
export function holdDeadlines(t: TestContext) {
  const waiting = new Map<NodeJS.Timeout, () => void>();
  const { setTimeout, clearTimeout } = globalThis;
  t.mock.method(globalThis, "setTimeout", (onTimeout: () => void, ms?: number, ...values: []) => {
    if (ms !== COUNT_TIMEOUT_MS) return setTimeout(onTimeout, ms, ...values);
    const timer = setTimeout(() => {});
    waiting.set(timer, onTimeout);
    return timer;
  });
  t.mock.method(globalThis, "clearTimeout", (timer: NodeJS.Timeout) => {
    waiting.delete(timer);
    clearTimeout(timer);
  });
  return {
    count: () => waiting.size,
    pass() {
      for (const onTimeout of waiting.values()) onTimeout();
      waiting.clear();
    },
  };
}
