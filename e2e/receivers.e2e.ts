import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "@stoa/service/test/free-port.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { Courier } from "@stoa/service/webhooks/courier.ts";
import { messageHeaders, newSecret } from "@stoa/service/webhooks/signature.ts";
import { temporaryFolder } from "./service-process.ts";

let market: Market;
let owner: Client;
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let guide: string;
before(async () => {
  market = await openMarket();
  // The receivers look at a clock of their own.
  market.clock.now = new Date();
  owner = await market.hasUser();
  folder = await temporaryFolder();
  guide = await readFile(new URL("../docs/guides/webhooks.md", import.meta.url), "utf8");
});
after(async () => {
  await market.close();
  await folder.remove();
});

/** The program in the guide that listens, as it stands there. */
function programIn(language: "js" | "python"): string {
  const blocks = [...guide.matchAll(new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, "gs"))].map(
    ([, code]) => code!,
  );
  return blocks.find((code) => code.includes("PORT"))!;
}

async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  return new Promise((resolve) => {
    socket.on("connect", () => resolve(true)).on("error", () => resolve(false));
  }).finally(() => socket.destroy()) as Promise<boolean>;
}

interface Running {
  url: string;
  said: string[];
  child: ChildProcess;
}

async function startReceiver(command: string, file: string, secret: string): Promise<Running> {
  const port = await freePort();
  const env = { PATH: process.env["PATH"], WEBHOOK_SECRET: secret, PORT: String(port) };
  const child = spawn(command, [file], { env, stdio: ["ignore", "pipe", "ignore"] });
  const said: string[] = [];
  child.stdout.setEncoding("utf8").on("data", (text) => said.push(...text.trim().split("\n")));
  while (!(await isListening(port))) {
    assert.equal(child.exitCode, null, `${command} ${file} ended`);
    await sleep(50);
  }
  return { url: `http://127.0.0.1:${port}/`, said, child };
}

/** Somebody registers; the receiver must know the secret before it is started, so that it is given to both. */
async function hasEndpoint(url: string): Promise<{ id: string; secret: string }> {
  const reply = await owner.post("/v1/webhooks", { url });
  assert.equal(reply.status, 201, reply.text);
  return reply.body.data;
}

async function deliveredTest(id: string): Promise<string> {
  const { body } = await owner.post(`/v1/webhooks/${id}/test`);
  const courier = new Courier(market.service.ctx, () => 0);
  while (await courier.round()) await courier.idle();
  return (await owner.get(`/v1/deliveries/${body.data.id}`)).body.data.status;
}

const bodyOf = (id: string) =>
  `{"id":"${id}","type":"review.created","created":"2026-01-01T00:00:00.000Z","data":{"comment":"Schön ✓"}}`;
const BODY = bodyOf("evt_1");
const headersBy = (secrets: string[], ageSeconds = 0, id = "evt_1") => {
  const timestamp = Math.floor(Date.now() / 1000) - ageSeconds;
  const message = { id, attempt: 1, timestamp, body: bodyOf(id) };
  return messageHeaders("X-Service-", message, secrets, { content: "timestamp_body", prefix: false });
};

const receivers = {
  "in Node": ["js", process.execPath, "receiver.mjs"],
  "in Python": ["python", "python3", "receiver.py"],
} as const;

for (const [name, [language, command, file]] of Object.entries(receivers)) {
  const isThere = spawnSync(command, ["--version"]).status === 0;
  suite(`the guide's receiver ${name}`, {
    skip: !isThere && `there is no ${command} on this machine`,
  }, () => {
    let running: Running;
    let webhookId: string;
    let secret: string;
    before(async () => {
      const path = join(folder.path, file);
      await writeFile(path, programIn(language));
      const endpoint = await hasEndpoint(`${market.origin}/dev/hooks/none`);
      ({ id: webhookId, secret } = endpoint);
      running = await startReceiver(command, path, secret);
      await owner.patch(`/v1/webhooks/${webhookId}`, { url: running.url });
    });
    after(() => running?.child.kill());

    const post = (headers: Record<string, string>, body = BODY) =>
      fetch(running.url, { method: "POST", headers, body }).then(async (reply) => {
        await reply.text();
        return reply.status;
      });

    /** What it says comes beside its answers, in its order. */
    const hasSaid = async (lines: number) => {
      while (running.said.length < lines) await sleep(20);
    };

    test("takes what is delivered, also while its secret is being changed", async () => {
      assert.equal(await deliveredTest(webhookId), "succeeded");
      await hasSaid(1);
      assert.match(running.said[0]!, /^test evt_/);
      await owner.post(`/v1/webhooks/${webhookId}/rotate-secret`, {});
      assert.equal(await deliveredTest(webhookId), "succeeded");
      await hasSaid(2);
    });

    test("works on an event once, however often it comes", async () => {
      const before = running.said.length;
      for (let times = 0; times < 3; times++) assert.equal(await post(headersBy([secret])), 200);
      assert.equal(await post(headersBy([newSecret(), secret])), 200);
      assert.equal(await post(headersBy([secret], 0, "evt_2"), bodyOf("evt_2")), 200);
      await hasSaid(before + 2);
      assert.deepEqual(running.said.slice(before), ["review.created evt_1", "review.created evt_2"]);
    });

    test("answers 400 to whatever is forged, changed, old, from the future or not signed", async () => {
      const right = headersBy([secret]);
      const { "X-Service-Signature": signature, ...unsigned } = right;
      const forgeries: [Record<string, string>, string?][] = [
        [headersBy([newSecret()])],
        [right, `${BODY} `],
        [headersBy([secret], 310)],
        [headersBy([secret], -310)],
        [unsigned],
        [{ ...unsigned, "X-Service-Signature": "" }],
        [{ ...unsigned, "X-Service-Signature": "é".repeat(64) }],
        [{ ...unsigned, "X-Service-Signature": `sha256=${signature}` }],
        [{ ...right, "X-Service-Timestamp": "" }],
        [{ ...right, "X-Service-Timestamp": "NaN" }],
        [{ ...right, "X-Service-Timestamp": "9".repeat(5_000) }],
        [{}],
      ];
      for (const [headers, body] of forgeries)
        assert.equal(await post(headers, body), 400, JSON.stringify(headers));
      assert.equal(await post(headersBy([secret], 290)), 200);
    });
  });
}
