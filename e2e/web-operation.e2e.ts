import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before } from "node:test";
import { gzipSync } from "node:zlib";
import { createFirstAdminLink } from "@stoa/service/backoffice/admin/first-admin.ts";
import { queueEmail } from "@stoa/service/platform/email/email-queue.ts";
import { renderEmail } from "@stoa/service/platform/email/render-email.ts";
import { startJobWorker } from "@stoa/service/platform/jobs/job-worker.ts";
import { backUpTo, shopOf } from "@stoa/service/test/backup-files.ts";
import { buyProduct, createProduct } from "@stoa/service/test/factories.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import type { Browser, BrowserContext } from "playwright-core";
import { looks, openBrowser, openContext, sees } from "./browser.ts";
import { everyRun, test } from "./full-run.ts";
import { HOSTILE, openAt, openMember, visitEach } from "./members.ts";
import { buildWebClient, mustBeSound } from "./web.ts";

let market: Market;
let browser: Browser;
let seller: Client;
let productId: string;
before(async () => {
  await buildWebClient();
  market = await openMarket({ config: { metricsToken: "METRICSTOKEN" } });
  market.clock.now = new Date();
  seller = await market.createUser({ name: "Seller" });
  productId = await createProduct(seller, { title: "Moved haiku" });
  await buyProduct(await market.createUser(), productId);
  await fill();
  await scheduleJob("verify-ledger");
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await market.close();
});

/** Failed jobs and emails, some with hostile texts. */
async function fill(): Promise<void> {
  const { ctx } = market.service;
  for (const recipient of ["ada@example.com", `${"long".repeat(15)}@${"example".repeat(6)}.com`]) {
    const email = renderEmail({ subject: HOSTILE, paragraphs: ["Something changed."] });
    await ctx.db.transaction().execute((tx) => queueEmail(ctx, tx, recipient, email));
  }
  await market.query(
    `insert into pgboss.job (name, data, source_name, source_created_on, source_retry_count, source_output)
       select 'notify-buyers-of-version-given-up', '{}', 'notify-buyers-of-version', now(), 10, $1 from generate_series(1, 2)`,
    [JSON.stringify({ error: `connect ECONNREFUSED ${"long".repeat(30)}` })],
  );
}

/** A worker that has ended: a run that an administrator starts waits. */
async function scheduleJob(name: string): Promise<void> {
  const job = { name, cron: "13 2 * * *", run: async () => {} };
  await (await startJobWorker(market.service.ctx, [job], [])).stop();
}

async function openAdmin(look = {}): Promise<{ session: Client; context: BrowserContext }> {
  const { userId } = await market.createUser({ name: "Admin", role: "admin" });
  return openMember(market, browser, {
    look,
    session: await market.createSession(userId, { secondFactor: true }),
  });
}

const PAGES = [
  ["/admin/health", "Verify the ledger"],
  ["/admin/jobs", "Retry 2 failed"],
  ["/admin/emails", "a•••@example.com"],
  ["/admin/backups", "Complete"],
  ["/admin/configuration", "STOA_METRICS_TOKEN"],
  ["/admin/version", "Database schema"],
] as const;

for (const look of looks)
  test(`the operator's pages, ${look.width} pixels, ${look.scheme}: sound`, async () => {
    const { session, context } = await openAdmin(look);
    await session.post("/v1/admin/backups");
    market.clock.forward(1_000);
    await session.post("/v1/admin/ledger-verifications");
    await market.service.ctx.operatorTasks.waitUntilIdle();
    await visitEach(context, market, PAGES, async (watched, [path, text]) => {
      await sees(watched.page, text);
      assert.doesNotMatch(await watched.page.content(), /METRICSTOKEN/);
      await mustBeSound(watched, `operation ${path}`);
    });
    await context.close();
  });

everyRun("an operator's round: health, ledger, jobs, emails, backup, download", async () => {
  const { context } = await openAdmin();
  const { page } = await openAt(context, market, "/admin/health");
  await page.getByRole("button", { name: "Check again" }).click();
  await page
    .getByRole("row", { name: /Database/ })
    .getByRole("img", { name: /^24 hours: 0 with failures/ })
    .waitFor();
  // A verification belongs to its time, and the looks began theirs at the same.
  market.clock.forward(1_000);
  await page.getByRole("button", { name: "Verify the ledger" }).dblclick();
  await sees(page, "No problems");
  await page.getByRole("button", { name: /that passed/ }).click();
  await sees(page, "keyring");

  await page.getByRole("link", { name: "Jobs" }).click();
  await page.getByLabel("State").selectOption("failed");
  await page.waitForURL("**/admin/jobs?state=failed");
  await page.getByRole("button", { name: "Retry notify-buyers-of-version" }).first().click();
  await sees(page, "1 job waits again");
  await page.getByRole("button", { name: "Retry 1 failed" }).click();
  await sees(page, "No jobs here");
  await page.goBack();

  const scheduled = page.locator("section", { hasText: "On a schedule" });
  const run = scheduled.getByRole("button", { name: "Run now verify-ledger" });
  await run.dblclick();
  await sees(page, "verify-ledger runs as soon as a worker is free");
  await scheduled.getByText("Waiting").waitFor();
  assert.equal(await run.isDisabled(), true);

  await page.getByRole("link", { name: "Version" }).click();
  await sees(page, "No other version ran here before");
  await page.getByText("All migrations").click();
  await sees(page, "0001_people.sql");

  await page.getByRole("link", { name: "Emails" }).click();
  await page.getByRole("button", { name: "Send all again" }).click();
  await sees(page, "2 emails are sent again");

  await page.getByRole("link", { name: "Backups" }).click();
  await page.getByRole("button", { name: "Back up now" }).dblclick();
  await page.getByRole("button", { name: "Download" }).first().waitFor();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Download" }).first().click(),
  ]);
  assert.match(download.suggestedFilename(), /^stoa-.*\.tar\.gz$/);
  await page
    .getByRole("button", { name: /^Delete stoa-/ })
    .first()
    .click();
  await page.getByRole("button", { name: "Delete the backup" }).click();
  await sees(page, "The backup was deleted");
  await context.close();
});

test("a restore in the browser: from the link of an empty installation to the shop of the backup", async () => {
  const { masterKeys, sessionKeys, dataDir } = market.service.ctx.config;
  const path = join(dataDir, "shop.tar.gz");
  await backUpTo(path, shopOf(market));
  const empty = await openMarket({ config: { masterKeys, sessionKeys } });
  try {
    const context = await openContext(browser, { width: 320 });
    const link = await createFirstAdminLink(empty.service.ctx);
    assert.ok(link);
    const watched = await openAt(context, empty, link.slice(empty.origin.length));
    const { page } = watched;
    await page.getByRole("link", { name: "Restore a backup" }).click();
    await page.getByRole("button", { name: "Restore the backup" }).click();
    await sees(page, "Choose the file of a backup.");
    const upload = (name: string, buffer: Buffer) =>
      page.getByLabel("Backup file").setInputFiles({ name, mimeType: "application/gzip", buffer });
    await upload("hostile.tar.gz", gzipSync(Buffer.from("no backup")));
    await page.getByRole("button", { name: "Restore the backup" }).click();
    await sees(page, "hostile.tar.gz cannot be restored");
    await mustBeSound(watched, "operation restore refused");
    await page.reload();
    await sees(page, "hostile.tar.gz cannot be restored");
    await upload("shop.tar.gz", await readFile(path));
    await page.getByRole("button", { name: "Restore the backup" }).dblclick();
    await sees(page, "The backup is restored");
    await mustBeSound(watched, "operation restored");
    await page.reload();
    await sees(page, "The backup is restored");
    const reply = await empty.as(seller.key).get(`/v1/products/${productId}`);
    assert.equal(reply.body.data.title, "Moved haiku");
    await context.close();
  } finally {
    await empty.close();
  }
});

test("a restore over a bad connection: parts and the start are sent again, and their result is read", async () => {
  const { masterKeys, sessionKeys, dataDir } = market.service.ctx.config;
  const path = join(dataDir, "again.tar.gz");
  await backUpTo(path, shopOf(market));
  const empty = await openMarket({ config: { masterKeys, sessionKeys } });
  try {
    const context = await openContext(browser, {});
    const link = await createFirstAdminLink(empty.service.ctx);
    const { page } = await openAt(context, empty, link?.slice(empty.origin.length) ?? "");
    await page.getByRole("link", { name: "Restore a backup" }).click();
    await page.route("**/parts", (route) => route.fulfill({ status: 503, body: "" }), { times: 1 });
    let starts = 0;
    await page.route("**/start", async (route) => {
      starts++;
      await route.fetch();
      await route.abort();
    });
    await page.getByLabel("Backup file").setInputFiles(path);
    await page.getByRole("button", { name: "Restore the backup" }).click();
    await sees(page, "The backup is restored");
    assert.ok(starts > 0);
    await context.close();
  } finally {
    await empty.close();
  }
});

test("without the link: the page says where it is", async () => {
  const context = await openContext(browser, {});
  const watched = await openAt(context, market, "/restore");
  await sees(watched.page, "Open the link that the service printed");
  await mustBeSound(watched, "operation restore without link");
  await context.close();
});
