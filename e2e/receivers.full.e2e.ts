import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { DeliveryWorker } from "@stoa/service/events/webhooks/delivery-worker.ts";
import { createSignatureHeaders, generateWebhookSecret } from "@stoa/service/events/webhooks/signature.ts";
import { freePort } from "@stoa/service/test/free-port.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { until } from "@stoa/service/test/until.ts";
import { deliverAll } from "@stoa/service/test/webhooks.ts";
import { installSdk } from "./packages.ts";
import { temporaryFolder } from "./service-process.ts";

let market: Market;
let owner: Client;
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let guide: string;
before(async () => {
  market = await openMarket();
  owner = await market.createUser();
  folder = await temporaryFolder();
  await installSdk(folder.path);
  guide = await readFile(new URL("../docs/guides/webhooks.md", import.meta.url), "utf8");
});
after(async () => {
  await market.close();
  await folder.remove();
});

/** The guide's code in one language, unchanged. */
function codeIn(language: string): string {
  const blocks = [...guide.matchAll(new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, "gs"))].map(
    ([, code]) => code!,
  );
  return blocks.find((code) => code.includes("WEBHOOK_SECRET") && code.includes("300"))!;
}

async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  return new Promise((resolve) => {
    socket.on("connect", () => resolve(true)).on("error", () => resolve(false));
  }).finally(() => socket.destroy()) as Promise<boolean>;
}

interface Running {
  url: string;
  lines: string[];
  child: ChildProcess;
}

async function startReceiver({ command, options }: Program, file: string, secret: string): Promise<Running> {
  const port = await freePort();
  const env = { PATH: process.env["PATH"], WEBHOOK_SECRET: secret, PORT: String(port) };
  const child = spawn(command, [...options(port), file], { env, stdio: ["ignore", "pipe", "ignore"] });
  const lines: string[] = [];
  child.stdout.setEncoding("utf8").on("data", (text) => lines.push(...text.trim().split("\n")));
  await until(`${command} ${file} listens`, () => {
    assert.equal(child.exitCode, null, `${command} ${file} ended`);
    return isListening(port);
  });
  return { url: `http://127.0.0.1:${port}/`, lines, child };
}

/** The endpoint is created first, since the receiver needs its secret at the start. */
async function createEndpoint(url: string): Promise<{ id: string; secret: string }> {
  const reply = await owner.post("/v1/webhooks", { url });
  assert.equal(reply.status, 201, reply.text);
  return reply.body.data;
}

async function deliveredTest(id: string): Promise<string> {
  // The receivers use the real clock, and refuse what is older than five minutes.
  market.clock.now = new Date();
  const { body } = await owner.post(`/v1/webhooks/${id}/test`);
  const worker = new DeliveryWorker(market.service.ctx, { random: () => 0 });
  await deliverAll(worker);
  return (await owner.get(`/v1/deliveries/${body.data.id}`)).body.data.status;
}

const bodyOf = (id: string) =>
  `{"id":"${id}","type":"review.created","created":"2026-01-01T00:00:00.000Z","data":{"comment":"Schön ✓"}}`;
const BODY = bodyOf("evt_1");
const headersBy = (secrets: string[], ageSeconds = 0, id = "evt_1") => {
  const timestamp = Math.floor(Date.now() / 1000) - ageSeconds;
  const message = { id, attempt: 1, timestamp, body: bodyOf(id) };
  return createSignatureHeaders("X-Service-", message, secrets, { content: "timestamp_body", prefix: false });
};

interface Program {
  command: string;
  /** Exits with 0 when everything that it needs is installed. */
  probe: string[];
  /** Before the file name. */
  options: (port: number) => string[];
  language: string;
  /** Wraps the guide's code where it is not a whole program. */
  around?: (code: string) => string;
}

const none = () => [];
/** A minimal server for Rack. */
const RACK = `
require "rack"
require "socket"
def run(app) = $app = app
CODE
server = TCPServer.new("127.0.0.1", ENV.fetch("PORT").to_i)
loop do
  socket = server.accept
  line = socket.gets or next
  headers = {}
  headers[$1] = $2 while (socket.gets || "").chomp =~ /\\A([^:]+): *(.*)\\z/
  env = Rack::MockRequest.env_for("/", method: "POST", input: socket.read(headers.find { |name, _| name.casecmp?("content-length") }&.last.to_i))
  headers.each { |name, value| env["HTTP_" + name.upcase.tr("-", "_")] = value }
  status, _, body = $app.call(env)
  socket.write "HTTP/1.1 #{status} X\\r\\nconnection: close\\r\\n\\r\\n#{body.join}"
  socket.close
end
`;

const programs: Record<string, Program> = {
  "in Node": { command: process.execPath, probe: ["--version"], options: none, language: "js" },
  "in Python": { command: "python3", probe: ["--version"], options: none, language: "python" },
  "in PHP": {
    command: "php",
    probe: ["--version"],
    options: (port) => ["-S", `127.0.0.1:${port}`],
    language: "php",
    around: (code) => `<?php\n${code}`,
  },
  "in Ruby": {
    command: "ruby",
    probe: ["-rrack", "-e", "1"],
    options: none,
    language: "ruby",
    around: (code) => RACK.replace("CODE", () => code),
  },
};

for (const [name, program] of Object.entries(programs)) {
  const isThere = spawnSync(program.command, program.probe).status === 0;
  const isWhole = program.around === undefined;
  suite(`guide webhooks: the receiver ${name}`, {
    skip: !isThere && `there is no ${program.command}, or not all that it needs, on this machine`,
  }, () => {
    let running: Running;
    let webhookId: string;
    let secret: string;
    before(async () => {
      // Node needs the extension; the others ignore it.
      const path = join(folder.path, `${program.language}.mjs`);
      const code = codeIn(program.language);
      await writeFile(path, program.around?.(code) ?? code);
      const endpoint = await createEndpoint(`${market.origin}/dev/hooks/none`);
      ({ id: webhookId, secret } = endpoint);
      running = await startReceiver(program, path, secret);
      await owner.patch(`/v1/webhooks/${webhookId}`, { url: running.url });
    });
    after(() => running?.child.kill());

    const post = (headers: Record<string, string>, body = BODY) =>
      fetch(running.url, { method: "POST", headers, body }).then(async (reply) => {
        await reply.text();
        return reply.status;
      });

    /** The receiver's output may arrive after its answers. */
    const printsLines = (count: number) => until(`${count} lines`, () => running.lines.length >= count);

    test("accepts deliveries, also during a change of the secret", async () => {
      assert.equal(await deliveredTest(webhookId), "succeeded");
      if (isWhole) await printsLines(1);
      if (isWhole) assert.match(running.lines[0]!, /^test evt_/);
      await owner.post(`/v1/webhooks/${webhookId}/rotate-secret`, {});
      assert.equal(await deliveredTest(webhookId), "succeeded");
      if (isWhole) await printsLines(2);
    });

    const worksOnce = async () => {
      const before = running.lines.length;
      for (let times = 0; times < 3; times++) assert.equal(await post(headersBy([secret])), 200);
      assert.equal(await post(headersBy([generateWebhookSecret(), secret])), 200);
      assert.equal(await post(headersBy([secret], 0, "evt_2"), bodyOf("evt_2")), 200);
      await printsLines(before + 2);
      assert.deepEqual(running.lines.slice(before), ["review.created evt_1", "review.created evt_2"]);
    };
    // The other receivers do not process events.
    if (isWhole) test("processes a repeated event once", worksOnce);

    test("answers 400 to forged, changed, old, future and unsigned requests", async () => {
      const right = headersBy([secret]);
      // The SDK verifies `webhook-signature` if it is there.
      const own = Object.fromEntries(Object.entries(right).filter(([name]) => !name.startsWith("webhook-")));
      const { "X-Service-Signature": signature, ...unsigned } = own;
      const forgeries: [Record<string, string>, string?][] = [
        [headersBy([generateWebhookSecret()])],
        [right, `${BODY} `],
        [headersBy([secret], 310)],
        [headersBy([secret], -310)],
        [unsigned],
        [{ ...unsigned, "X-Service-Signature": "" }],
        [{ ...unsigned, "X-Service-Signature": "é".repeat(64) }],
        [{ ...own, "X-Service-Timestamp": "" }],
        [{ ...own, "X-Service-Timestamp": "NaN" }],
        [{ ...own, "X-Service-Timestamp": "9".repeat(5_000) }],
        [{}],
      ];
      // The SDK accepts both forms of an endpoint's signature.
      const prefixed = { ...unsigned, "X-Service-Signature": `sha256=${signature}` };
      assert.equal(await post(prefixed), program.language === "js" ? 200 : 400);
      for (const [headers, body] of forgeries)
        assert.equal(await post(headers, body), 400, JSON.stringify(headers));
      assert.equal(await post(headersBy([secret], 290)), 200);
    });
  });
}
