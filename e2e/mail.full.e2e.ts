import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { freePort } from "@stoa/service/test/free-port.ts";
import { startMailServer } from "@stoa/service/test/mail-server.ts";
import { until } from "@stoa/service/test/until.ts";
import {
  copyDemoData,
  type Ended,
  npmStart,
  type Started,
  stop,
  temporaryFolder,
} from "./service-process.ts";

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
before(async () => {
  folder = await temporaryFolder();
  await copyDemoData(folder.path);
});
after(() => folder.remove());

async function askForLink({ origin }: Started, email: string): Promise<void> {
  const reply = await fetch(`${origin}/api/auth/magic-link`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ email }),
  });
  assert.equal(reply.status, 200);
}

/** The service's output after its box, once it matches. */
async function printed({ npm, ended }: Started, pattern: RegExp): Promise<string> {
  let output = "";
  let end: Ended | null = null;
  npm.stdout!.on("data", (chunk) => {
    output += chunk;
  });
  void ended.then((value) => {
    end = value;
  });
  const found = await until(`${pattern} is printed`, () => {
    assert.equal(end, null, "the service runs");
    return pattern.exec(output);
  });
  return found[1]!;
}

test("email without a server: the console prints the link, and /dev/mail shows the email", async () => {
  const service = await npmStart(folder.path);
  assert.match(service.stdout, new RegExp(`Mailbox +${service.origin}/dev/mail`));
  const line = printed(service, /^Mail to ada@example\.com: .* → (http\S+)$/m);
  await askForLink(service, "ada@example.com");
  const link = await line;
  assert.ok(link.startsWith(`${service.origin}/auth/verify#token=`), link);
  const reply = await fetch(`${service.origin}/dev/mail`, { headers: { accept: "application/json" } });
  const { data } = (await reply.json()) as { data: { to: string; text: string }[] };
  assert.equal(data[0]!.to, "ada@example.com");
  assert.ok(data[0]!.text.includes(link));
  await stop(service);
});

test("email queued by a process that is killed at once: arrives", async () => {
  const port = await freePort();
  const smtp = { SMTP_URL: `smtp://127.0.0.1:${port}` };
  const promising = await npmStart(folder.path, { ...smtp, STOA_ROLES: "api" });
  await askForLink(promising, "grace@example.com");
  process.kill(promising.servicePid, "SIGKILL");
  await promising.ended;
  const server = await startMailServer({ port });
  const keeping = await npmStart(folder.path, smtp);
  const [got] = await server.received(1);
  assert.deepEqual(got!.recipients, ["grace@example.com"]);
  assert.match(got!.text, /\/auth\/verify#token=\S+/);
  assert.equal((await stop(keeping)).code, 0);
  assert.equal(server.emails.length, 1);
  await server.close();
});
