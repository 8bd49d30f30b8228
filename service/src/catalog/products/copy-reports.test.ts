import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { createWorkflow, promptStep } from "../../../test/workflows.ts";
import { requireUuid } from "../../core/ids.ts";
import { checkForCopies, checkForCopiesJob, requestMissingCopyChecks } from "./copy-reports.ts";

let market: Market;
let admin: Client;
before(async () => {
  market = await openMarket();
  const { userId } = await market.createUser({ role: "admin" });
  admin = await market.createSession(userId, { secondFactor: true });
});
after(() => market.close());

const WORDS =
  "read each sentence of the letter then list what sounds rude unclear or too long and offer a kinder version that keeps the meaning in the tone of a patient friend who has all the time in the world";

/** Runs the requested checks of a product, each once. */
async function runChecks(productId: string): Promise<number> {
  const { rows } = await market.query(
    "delete from pgboss.job where name = $1 and data->>'productId' = $2 returning data",
    [checkForCopiesJob.name, requireUuid("prod", productId)],
  );
  await checkForCopies(
    market.service.ctx,
    rows.map(({ data }) => data),
  );
  return rows.length;
}

async function publish(seller: Client, title: string, text: string): Promise<string> {
  market.clock.forward(1_000);
  const productId = await createProduct(seller, { title, content: `${text} {{text}}`, variables: undefined });
  assert.equal(await runChecks(productId), 1);
  return productId;
}

async function reportsOf(productId: string) {
  const reply = await admin.get("/v1/admin/products?reported=true&limit=100");
  assert.equal(reply.status, 200, reply.text);
  return reply.body.data.find(({ id }: { id: string }) => id === productId)?.reports ?? [];
}

const dismiss = (productId: string) => admin.post(`/v1/admin/products/${productId}/dismiss-reports`);

test("a changed copy of another seller's text: reported by the marketplace; the original and the seller's own copies are not", async () => {
  const [author, copier] = [await market.createUser(), await market.createUser()];
  const original = await publish(author, "Kind letters", WORDS);
  const own = await publish(author, "Kind letters for work", WORDS);
  const copy = await publish(copier, "Rudeness remover", WORDS.toUpperCase().replace("PATIENT", "CALM"));
  const [report, ...others] = await reportsOf(copy);
  assert.equal(others.length, 0);
  assert.deepEqual([report.reporter, report.reasonCode], [null, "infringing"]);
  assert.match(
    report.comment,
    new RegExp(`Its text is [89]\\d % the same as that of “Kind letters” \\(${original}\\)`),
  );
  assert.deepEqual([await reportsOf(original), await reportsOf(own)], [[], []]);
  assert.equal((await dismiss(copy)).status, 200);
  await checkForCopies(market.service.ctx, [{ productId: requireUuid("prod", copy) }]);
  assert.deepEqual(await reportsOf(copy), [], "moderators have decided about it");
});

test("a new version that copies: reported at its release", async () => {
  const original = await publish(
    await market.createUser(),
    "Star map",
    WORDS.split(" ").toReversed().join(" "),
  );
  const copier = await market.createUser();
  const copy = await publish(copier, "Cloud map", "draw clouds over");
  assert.deepEqual(await reportsOf(copy), []);
  const content = `${WORDS.split(" ").toReversed().join(" ")} {{text}}`;
  const reply = await copier.patch(`/v1/products/${copy}`, { content });
  assert.equal(reply.status, 200, reply.text);
  assert.equal(await runChecks(copy), 1);
  assert.ok((await reportsOf(copy))[0].comment.includes(original));
});

test("a title like that of a better-selling product: reported; one that sells as well is not", async () => {
  const famous = await publish(await market.createUser(), "Grammar Wizard", "fix the grammar of");
  await buyProduct(await market.createUser(), famous);
  const lookAlike = await publish(await market.createUser(), "Grammar-Wizzard", "correct mistakes in");
  const [report] = await reportsOf(lookAlike);
  assert.deepEqual([report.reporter, report.reasonCode], [null, "misleading"]);
  assert.equal(report.comment, `Its title is almost that of “Grammar Wizard” (${famous}), which sold more.`);
  assert.deepEqual(await reportsOf(famous), []);
});

test("workflows with the same steps and other texts: are no copies", async () => {
  const workflow = (text: string) => ({ steps: [promptStep("one", text)], result: "steps.one.output" });
  await createWorkflow(await market.createUser(), workflow("Name a river."));
  const other = await createWorkflow(await market.createUser(), workflow("Count to ten."));
  await runChecks(other);
  assert.deepEqual(await reportsOf(other), []);
});

test("products without a fingerprint: the nightly job requests their checks", async () => {
  const productId = await publish(await market.createUser(), "Older than the check", "sing about the sea");
  await requestMissingCopyChecks(market.service.ctx);
  assert.equal(await runChecks(productId), 0);
  await market.query("delete from product_fingerprints where product_id = $1", [
    requireUuid("prod", productId),
  ]);
  await requestMissingCopyChecks(market.service.ctx);
  assert.equal(await runChecks(productId), 1);
});
