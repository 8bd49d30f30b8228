import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, beforeEach, test } from "node:test";
import { dumpDatabase } from "../../../test/dump.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { notificationsOf } from "../../../test/notifications.ts";
import { until } from "../../../test/until.ts";
import {
  type ReceivedRequest,
  startWebhookReceiver,
  type WebhookReceiver,
} from "../../../test/webhook-receiver.ts";
import { webhookHelpers } from "../../../test/webhooks.ts";
import {
  cancelExecution,
  createWorkflow,
  echoStep,
  executeWorkflow,
  postExecution,
  startExecution,
  startWorker,
  transformStep,
  untilStatus,
} from "../../../test/workflows.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { rotateKeyring } from "../../keyring.ts";

let market: Market;
let receiver: WebhookReceiver;
let worker: ReturnType<typeof startWorker>;
let author: Client;
const { deliver } = webhookHelpers(
  () => market,
  () => receiver,
);
before(async () => {
  market = await openMarket();
  receiver = await startWebhookReceiver();
  worker = startWorker(market);
});
beforeEach(async () => {
  author = await market.createUser();
  receiver.received.length = 0;
  receiver.answer = 200;
});
after(async () => {
  await worker.stop();
  await market.close();
  await receiver.close();
});

const webhookUrl = () => `${receiver.url}/called`;
const bodies = () => receiver.received.map(({ body }) => JSON.parse(body));
const createSecret = async (who = author) => {
  const session = await market.createSession(who.userId);
  const reply = await session.post("/v1/account/callback-secret");
  assert.equal(reply.status, 201, reply.text);
  return reply.body.data;
};
const signatureBy = (secret: string, { headers, body }: ReceivedRequest) =>
  createHmac("sha256", secret).update(`${headers["x-service-timestamp"]}.${body}`).digest("hex");

test("completed run: one callback in the event envelope, signed with the account's secret", async () => {
  const { secret } = await createSecret();
  const workflowId = await createWorkflow(author, {
    steps: [echoStep("a", "private input")],
    result: "steps.a.output",
  });
  const run = await executeWorkflow(author, workflowId, { webhookUrl: webhookUrl() });
  await deliver();
  const [received, ...more] = receiver.received;
  assert.deepEqual([received!.path, more.length], ["/called", 0]);
  assert.equal(received!.headers["x-service-signature"], signatureBy(secret, received!));
  const { id, type, data } = JSON.parse(received!.body);
  assert.deepEqual([type, received!.headers["x-service-event-id"]], ["execution.completed", id]);
  const { executionId, statusUrl, eventsUrl: _, ...reported } = run;
  assert.deepEqual(data, {
    execution: { id: executionId, ...reported, outputUrl: statusUrl, waitingFor: [] },
  });
});

test("output of a callback: sealed in the database, delivered and shown whole, erased with its run", async () => {
  await createSecret();
  const workflowId = await createWorkflow(author, {
    input: { type: "object", properties: { word: { type: "string" } } },
    steps: [transformStep("a", "input.word")],
    result: "steps.a.output",
  });
  receiver.answer = 500;
  const input = { word: "PLUMBLOSSOM" };
  const { executionId, output } = await executeWorkflow(author, workflowId, {
    webhookUrl: webhookUrl(),
    input,
  });
  assert.equal(output, "PLUMBLOSSOM");
  assert.ok(!(await dumpDatabase(market)).includes("PLUMBLOSSOM"));
  await rotateKeyring(market.service.ctx);
  await deliver();
  assert.deepEqual(bodies()[0].data.execution.output, output);
  const { rows } = await market.query("select id from webhook_deliveries order by id desc limit 1");
  const deliveryId = toId("dlv", rows[0].id);
  const readBody = async () =>
    JSON.parse((await author.get(`/v1/deliveries/${deliveryId}`)).body.data.attempts[0].request.body);
  assert.deepEqual((await readBody()).data.execution.output, output);
  assert.equal((await author.delete(`/v1/ai/executions/${executionId}`)).status, 200);
  assert.equal((await readBody()).data.execution.output, null);
  const left = await market.query(
    "select count(*)::int as count from events where sealed_body is not null and execution_id = $1",
    [toUuid("exec", executionId)],
  );
  assert.equal(left.rows[0].count, 0);
  // Later attempts send the callback without the output.
  receiver.answer = 200;
  market.clock.forward(3_600_000);
  await deliver();
  assert.equal(bodies().at(-1).data.execution.output, null);
});

test("failed, waiting and canceled runs: send callbacks; a delay sends none", async () => {
  const failing = await createWorkflow(author, { steps: [echoStep("a", "x", { model: "sandbox-context" })] });
  await executeWorkflow(author, failing, { webhookUrl: webhookUrl() });
  const approval = { id: "ok", type: "approval", timeoutSeconds: 600 };
  const waiting = await createWorkflow(author, {
    steps: [
      { id: "later", type: "delay", seconds: 60 },
      { ...approval, needs: ["later"] },
    ],
  });
  const id = await startExecution(author, waiting, { webhookUrl: webhookUrl() });
  await untilStatus(author, id, "waiting");
  market.clock.forward(60_000);
  await deliver();
  await untilPosted("execution.waiting");
  await cancelExecution(author, id);
  await deliver();
  assert.deepEqual(
    bodies().map(({ type, data }) => [
      type,
      data.execution.status,
      data.execution.error?.code ?? null,
      data.execution.waitingFor,
    ]),
    [
      ["execution.failed", "failed", "CONTEXT_LENGTH_EXCEEDED", []],
      ["execution.waiting", "waiting", null, ["ok"]],
      ["execution.canceled", "canceled", null, []],
    ],
  );
});

test("a run that waits, and the end of a run of a minute: a notification each; a short or canceled run: none", async () => {
  const owner = await market.createUser();
  const approval = { id: "ok", type: "approval", timeoutSeconds: 600 };
  const waiting = await createWorkflow(owner, { steps: [approval] }, { title: "Report" });
  const id = await startExecution(owner, waiting);
  await untilStatus(owner, id, "waiting");
  const [asked, ...others] = await notificationsOf(owner);
  assert.equal(others.length, 0);
  assert.deepEqual(
    [asked!.title, asked!.text, asked!.url],
    ["A run of Report waits for your approval", "Step: ok.", `/runs/${id}`],
  );
  market.clock.forward(60_000);
  assert.equal((await owner.post(`/v1/ai/executions/${id}/steps/ok/approve`)).status, 200);
  await untilStatus(owner, id, "completed");
  const refused = await startExecution(owner, waiting);
  await untilStatus(owner, refused, "waiting");
  market.clock.forward(60_000);
  await owner.post(`/v1/ai/executions/${refused}/steps/ok/reject`);
  await untilStatus(owner, refused, "failed");
  const canceled = await startExecution(owner, waiting);
  await untilStatus(owner, canceled, "waiting");
  market.clock.forward(60_000);
  await cancelExecution(owner, canceled);
  const short = await createWorkflow(owner, { steps: [transformStep("a", "1")] });
  await executeWorkflow(owner, short);
  const kinds = (await notificationsOf(owner)).map(({ kind, subject }) => [kind, subject.id]);
  assert.deepEqual(kinds, [
    ["execution.waiting", canceled],
    ["execution.failed", refused],
    ["execution.waiting", refused],
    ["execution.completed", id],
    ["execution.waiting", id],
  ]);
});

async function untilPosted(type: string): Promise<void> {
  await until(`${type} was posted`, async () => {
    await deliver();
    return bodies().some((body) => body.type === type);
  });
}

test("callback endpoint: is in no list, gets no events and counts against no limit", async () => {
  const workflowId = await createWorkflow(author, { steps: [echoStep("a", "x")] });
  for (const path of ["/one", "/two", "/one"])
    await executeWorkflow(author, workflowId, { webhookUrl: receiver.url + path });
  assert.deepEqual((await author.get("/v1/webhooks")).body.data, []);
  assert.deepEqual((await author.get("/v1/events")).body.data, []);
  await author.post(`/v1/products/${workflowId}/publish`);
  await deliver();
  assert.deepEqual(receiver.received.map(({ path }) => path).sort(), ["/one", "/one", "/two"]);
  const { rows } = await market.query("select url from webhook_endpoints where user_id = $1 order by url", [
    author.userId,
  ]);
  assert.deepEqual(
    rows.map(({ url }) => url),
    ["", `${receiver.url}/one`, `${receiver.url}/two`],
  );
});

test("rotated callback secret: the new one signs at once, the old one also for a day, and neither is shown again", async () => {
  const first = await createSecret();
  market.clock.forward(1_000);
  const second = await createSecret();
  const workflowId = await createWorkflow(author, { steps: [echoStep("a", "x")] });
  const deliveredRequest = async () => {
    await executeWorkflow(author, workflowId, { webhookUrl: webhookUrl() });
    await deliver();
    return receiver.received.at(-1)!;
  };
  const both = await deliveredRequest();
  assert.equal(both.headers["x-service-signature"], signatureBy(second.secret, both));
  assert.equal(both.headers["x-service-signature-previous"], signatureBy(first.secret, both));
  const session = await market.createSession(author.userId);
  const { data } = (await session.get("/v1/account/callback-secret")).body;
  assert.deepEqual(data, { activatedAt: second.activatesAt, oldSecretUntil: second.oldSecretUntil });
  market.clock.forward(24 * 3_600_000);
  assert.equal((await deliveredRequest()).headers["x-service-signature-previous"], undefined);
  assert.equal((await author.get("/v1/account/callback-secret")).status, 403);
});

test("inbox of the service: verifies the signature of every callback", async () => {
  const workflowId = await createWorkflow(author, { steps: [echoStep("a", "x")], result: "steps.a.output" });
  const verdicts: string[] = [];
  for (const inbox of ["/dev/hooks/first", "/dev/hooks/second"]) {
    await executeWorkflow(author, workflowId, { webhookUrl: market.origin + inbox });
    await deliver();
    const { body } = await author.get(inbox, { accept: "application/json" });
    verdicts.push(...body.data.map(({ signature }: { signature: string }) => signature));
  }
  assert.deepEqual(verdicts, ["right", "right"]);
});

test("webhookUrl that may not be called: 400 at its field", async () => {
  const workflowId = await createWorkflow(author, { steps: [echoStep("a", "x")] });
  for (const url of [
    "http://10.0.0.1/x",
    "ftp://example.com",
    "nonsense",
    "https://u:p@example.com",
    market.origin,
  ]) {
    const reply = await postExecution(author, workflowId, { webhookUrl: url });
    assert.deepEqual([reply.status, reply.body.error.details.field], [400, "webhookUrl"], url);
  }
});

test("output over the size of a body: is null in the callback and readable at outputUrl", async () => {
  const workflowId = await createWorkflow(author, {
    input: { type: "object", properties: { text: { type: "string" } } },
    steps: [echoStep("a", "x")],
    result: "input.text",
  });
  const text = "é".repeat(150_000);
  await executeWorkflow(author, workflowId, { webhookUrl: webhookUrl(), input: { text } });
  await deliver();
  const { execution } = bodies()[0].data;
  assert.equal(execution.output, null);
  assert.equal((await author.get(execution.outputUrl)).body.data.output, text);
});
