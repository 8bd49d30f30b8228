import assert from "node:assert/strict";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { inFullRun } from "@stoa/service/test/full-size.ts";
import { copyDemoData, npmStart, type Started, shell, stop, temporaryFolder } from "./service-process.ts";

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let service: Started;
before(async () => {
  folder = await temporaryFolder();
  await copyDemoData(folder.path);
  service = await npmStart(folder.path);
});
after(async () => {
  await stop(service);
  await folder.remove();
});

/** The shell blocks of a guide in order, with their headings. */
async function blocksOf(guide: string): Promise<{ heading: string; lines: string }[]> {
  const text = await readFile(new URL(`../docs/guides/${guide}`, import.meta.url), "utf8");
  return text.split(/^#+ /m).flatMap((section) => {
    const heading = section.split("\n")[0]!;
    return [...section.matchAll(/```sh\n(.*?)```/gs)].map(([, lines]) => ({ heading, lines: lines!.trim() }));
  });
}

/** The same for a guide that starts with settings for address and key, set to the started service. */
async function keyedBlocksOf(guide: string) {
  const [first, ...others] = await blocksOf(guide);
  assert.match(first!.lines, /http:\/\/127\.0\.0\.1:4000.*stoa_test_…/);
  const lines = first!.lines
    .replace("http://127.0.0.1:4000", service.origin)
    .replace("stoa_test_…", service.key);
  return [{ ...first!, lines }, ...others];
}

const MARK = "----- the next block -----";

/** Runs all blocks in one shell, as a user would. Returns the output of each. */
async function run(blocks: { lines: string }[], settings: Record<string, string> = {}): Promise<string[]> {
  const { code, stdout, stderr } = await shell(
    blocks.map(({ lines }) => lines).join(`\necho; echo "${MARK}"\n`),
    settings,
  );
  assert.equal(code, 0, `${stdout}\n${stderr}`);
  return stdout.split(`\n${MARK}\n`).map((output) => output.trim());
}

/** Runs a guide against the started service. Returns the output by heading. */
async function follow(guide: string) {
  const blocks = await blocksOf(guide);
  const example = "http://127.0.0.1:4000";
  assert.ok(blocks[0]!.lines.includes(example));
  blocks[0]!.lines = blocks[0]!.lines.replace(example, service.origin);
  const output = await run(blocks);
  const what = blocks.map(({ heading }, at) => ({ heading, output: output[at]! }));
  return {
    headings: [...new Set(what.map(({ heading }) => heading))],
    after: (heading: string) =>
      what.filter((block) => block.heading === heading).map((block) => block.output),
  };
}

test("guide authentication: its shell blocks give the described results", async () => {
  const { headings, after } = await follow("authentication.md");
  const [asked, signedIn] = after("Sign in by email").map((text) => JSON.parse(text));
  assert.equal(asked.success, true);
  assert.equal(signedIn.data.email, "grace@example.net");
  const [products] = after("Create an API key").map((text) => JSON.parse(text));
  assert.equal(products.data.length, 1);
  const [notifications] = after("Notifications").map((text) => JSON.parse(text));
  assert.deepEqual(
    [notifications.data.map(({ title }: { title: string }) => title), notifications.meta.unreadCount],
    [["The API key laptop was created"], 1],
  );
  const [purchases] = after("Use OAuth for another program").map((text) => JSON.parse(text));
  assert.deepEqual([purchases.success, purchases.data], [true, []]);
  const [limits] = after("Rate limits");
  for (const name of ["limit", "remaining", "reset"])
    assert.match(limits!, new RegExp(`^x-ratelimit-${name}: \\d+`, "im"));
  assert.deepEqual(
    headings,
    [
      "Authentication",
      "Sign in by email",
      "Create an API key",
      "Notifications",
      "Use OAuth for another program",
      "Rate limits",
    ],
    "a shell block without an assertion",
  );
});

test("guide evaluations: its shell blocks give the described results", async () => {
  const blocks = await keyedBlocksOf("evaluations.md");
  const output = await run(blocks);
  const [, stored, files, evaluated, card, proof, repeated, judged, compared, ...others] = output;
  const { visibleCases, hiddenCases, hash } = JSON.parse(stored!).data;
  assert.deepEqual([visibleCases, hiddenCases], [1, 1]);
  const [imported, ...exported] = files!.split("\n");
  const { imported: count, problems } = JSON.parse(imported!.slice(0, imported!.lastIndexOf("}") + 1)).data;
  assert.deepEqual([count, problems.length, problems[0].line], [1, 1, 6]);
  assert.match(files!, /Names the topic/);
  assert.ok(exported.length > 3, files);
  const detail = JSON.parse(evaluated!.slice(evaluated!.lastIndexOf('{"success"'))).data;
  assert.deepEqual(
    detail.columns.map(({ kind, passed, n }: Record<string, unknown>) => [kind, passed, n]),
    [
      ["product", 6, 6],
      ["baseline", 3, 6],
    ],
  );
  const { scoreCard } = JSON.parse(card!).data;
  assert.deepEqual([scoreCard.testSetHash, scoreCard.models[0].isSandbox], [hash, true]);
  assert.equal(scoreCard.models[0].passPowerK.rate.value, 1);
  assert.equal(JSON.parse(proof!).data.outputs.length, 6);
  assert.deepEqual(scoreCard.regressions, []);
  const { maxCost, monthlyBudget, used, paused } = JSON.parse(repeated!).data;
  assert.deepEqual([maxCost, monthlyBudget, used, paused], [0.5, 2, { evaluations: 0, cost: 0 }, null]);
  const judgedCard = JSON.parse(judged!.slice(judged!.lastIndexOf('{"success"'))).data.scoreCard;
  const [{ judged: figures }] = judgedCard.models;
  assert.deepEqual(
    [judgedCard.judge.model, figures.passed, figures.n, figures.undecided, figures.baseline.passed],
    ["sandbox", 3, 3, 0, 0],
  );
  const { columns } = JSON.parse(compared!.slice(compared!.lastIndexOf('{"success"'))).data;
  assert.deepEqual(
    columns.map(({ kind, runs, cost }: Record<string, unknown>) => [kind, runs, cost]),
    ["product", "judge", "baseline", "judge"].map((kind) => [kind, 3, 0]),
  );
  assert.deepEqual(others, [], "a shell block without an assertion");
});

test("guide products: its shell blocks give the described results", async () => {
  const { headings, after } = await follow("products.md");
  const [refused, published] = after("Create and publish a product").map((text) => JSON.parse(text));
  assert.deepEqual(
    refused.error.details.errors.map(({ field }: { field: string }) => field),
    ["description", "category", "compatibility"],
  );
  assert.equal(published.data.status, "published");
  const [sampled] = after("Samples and license").map((text) => JSON.parse(text).data);
  assert.equal(sampled.license, "CC-BY-4.0");
  const outputs = sampled.samples.map(({ output }: { output: string }) => output.slice(0, 9));
  assert.deepEqual([outputs, sampled.version], [["[sandbox]", "White on "], "1.0.0"]);
  const [history] = after("Status").map((text) => JSON.parse(text));
  assert.deepEqual(
    history.data.map(({ action }: { action: string }) => action),
    ["product.published"],
  );
  const [versions] = after("Versions").map((text) => JSON.parse(text));
  assert.deepEqual(
    versions.data.map(({ version, changelog }: Record<string, string>) => [version, changelog]),
    [
      ["2.0.0", ""],
      ["1.1.0", "Choose the mood."],
      ["1.0.0", ""],
    ],
  );
  const [begun, mistyped, chinese, cheap, facets, ...others] = after("Search and filter").map((text) =>
    JSON.parse(text),
  );
  const [measured] = after("Measured quality").map((text) => JSON.parse(text).data);
  const lowest = measured.map(({ score }: { score: { rate: { low: number } } }) => score.rate.low);
  assert.ok(lowest.every((low: number) => low >= 0.7));
  const again = JSON.parse(after("Caching")[0]!);
  const { title, id } = begun.data[0];
  assert.equal(title, "Haiku about anything");
  assert.deepEqual([mistyped.data[0].id, mistyped.meta.correctedSearch], [id, "haiku"]);
  assert.match(chinese.data[0].title, /提示/);
  const prices = cheap.data.map(({ price }: { price: number }) => price);
  assert.ok(prices.length > 0 && prices.every((price: number) => price <= 5));
  assert.deepEqual(
    prices,
    prices.toSorted((a: number, b: number) => a - b),
  );
  const inWriting = facets.data.category.find(({ value }: { value: string }) => value === "writing");
  assert.ok(inWriting.count >= cheap.meta.total && facets.data.category.length > 1, "its own filter aside");
  assert.equal(again, 304);
  assert.deepEqual(others, [], "a shell block without an assertion");
  assert.deepEqual(
    headings,
    [
      "Products",
      "Create and publish a product",
      "Samples and license",
      "Status",
      "Versions",
      "Search and filter",
      "Measured quality",
      "Caching",
    ],
    "a shell block without an assertion",
  );
});

test("guide analytics: its shell blocks give the described results", async () => {
  const { headings, after } = await follow("analytics.md");
  const { summary, timeline } = JSON.parse(after("Analytics")[0]!).data;
  assert.deepEqual([summary.grossRevenue, summary.platformFees, summary.netRevenue], [19.99, 2, 17.99]);
  assert.equal(timeline.length, 8);
  const PROOF = "`/analytics/entries`: prove a sum";
  const { data: entries, meta } = JSON.parse(after(PROOF)[0]!);
  assert.deepEqual([entries.length, entries[0].amount, meta.sum], [1, 17.99, summary.netRevenue]);
  const [names, customer, ...others] = after("Download as CSV")[0]!.split("\r\n");
  assert.match(names!, /^id,name,currency,/);
  assert.match(customer!, /^usr_[^,]*,[^,]*,USD,1,19\.99,/);
  assert.deepEqual(others, []);
  assert.deepEqual(headings, ["Analytics", PROOF, "Download as CSV"], "a shell block without an assertion");
});

test("guide selling: its shell blocks give the described results", async () => {
  const { headings, after } = await follow("selling.md");
  const [seller] = after("Public profile").map((text) => JSON.parse(text));
  const { handle, avatar, links, counts } = seller.data;
  assert.deepEqual([handle, links[0].label, counts.products], ["issa", "Notes", 1]);
  assert.equal((await fetch(avatar.url)).headers.get("content-type"), "image/webp");
  const [quote] = after("Price").map((text) => JSON.parse(text));
  assert.deepEqual([quote.data.price, quote.data.countries.length], [19.99, 2]);
  const [tryOut, tried, used] = answersIn(after("Try before buying")[0]!);
  assert.deepEqual([tryOut.data.maxPerDay, tried.data.triesLeft, used.data.used.today.tries], [200, 2, 1]);
  assert.match(tried.data.output, /^\[sandbox\]/);
  const [code] = after("Discount codes").map((text) => JSON.parse(text));
  assert.deepEqual([code.data.code, code.data.percentOff, code.data.redemptions], ["SPRING", 50, 0]);
  const [bought, referral] = after("Referrals")[0]!
    .split(/(?<=\})(?=\{"success")/)
    .map((text) => JSON.parse(text));
  assert.deepEqual([bought.data.status, bought.data.amount], ["completed", 9.99]);
  assert.deepEqual([referral.data.sales, referral.data.earnings[0].total], [1, 1]);
  const [sales, sale, runs] = after("Sales").flatMap(answersIn);
  assert.deepEqual([sale.data.ifRefunded.earnings, sale.data.firstUsedAt, runs.data.total], [7.99, null, 0]);
  const { amount, fee, commission, tax, earnings } = sales.data[0];
  assert.deepEqual([amount, fee, commission, tax, earnings], [9.99, 1, 1, 0, 7.99]);
  const [reviews, products] = answersIn(after("Reviews and runs")[0]!);
  assert.deepEqual([reviews.data, products.data], [[], []]);
  const [account, balance, maturities] = answersIn(after("Payouts")[0]!);
  assert.deepEqual([maturities.data[0].amount, maturities.data[0].sales], [7.99, 1]);
  assert.equal(account.data.account, "acct_test");
  const { pending, available, nextMaturity } = balance.data[0];
  assert.deepEqual([pending, available, nextMaturity.amount], [7.99, 0, 7.99]);
  assert.deepEqual(
    headings,
    [
      ...["Selling", "Public profile", "Price", "Try before buying", "Discount codes", "Referrals"],
      ...["Sales", "Reviews and runs", "Payouts"],
    ],
    "a shell block without an assertion",
  );
});

/** Runs a guide with the key that the service printed, and its program at the end. Returns the output of each block. */
async function followWithKey(guide: string): Promise<string[]> {
  const blocks = await keyedBlocksOf(guide);
  const text = await readFile(new URL(`../docs/guides/${guide}`, import.meta.url), "utf8");
  const [, program] = /```js\n(.*?)```/s.exec(text)!;
  // The folder with the installed package.
  const inService = `cd "${new URL("../service", import.meta.url).pathname}"`;
  const node = { heading: "Node", lines: `${inService} && node --input-type=module <<'END'\n${program}END` };
  return run([...blocks, node]);
}

test("guide openai: its shell blocks and its Node program give the described results", async () => {
  const [, listed, answered, refused, streamed, ...others] = await followWithKey("openai.md");
  const models = JSON.parse(listed!);
  assert.deepEqual([models.object, models.data[0].name], ["list", "Haiku about anything"]);
  const { object, choices } = JSON.parse(answered!);
  assert.deepEqual([object, choices[0].finish_reason], ["chat.completion", "stop"]);
  assert.match(choices[0].message.content, /^\[sandbox\]/);
  assert.deepEqual(
    [JSON.parse(refused!).error.param, JSON.parse(refused!).error.code],
    ["n", "INVALID_REQUEST"],
  );
  assert.match(streamed!, /^\[sandbox\].*\n\d+ tokens, exec_[a-z0-9]+$/s);
  assert.deepEqual(others, [], "a shell block without an assertion");
});

test("guide mcp: its shell blocks and its Node program give the described results", async () => {
  const [listed, called, ...others] = await followWithKey("mcp.md");
  const { tools } = JSON.parse(listed!).result;
  assert.deepEqual(
    tools.slice(0, 6).map(({ title }: { title: string }) => title),
    [
      ...["Look at a run", "Cancel a run"],
      ...["Evaluate a product of yours", "Look at an evaluation", "Cancel an evaluation"],
      "Haiku about anything",
    ],
  );
  assert.match(called!, /^\d+ characters so far\n.*\[sandbox\].* exec_[a-z0-9]+$/s);
  assert.deepEqual(others, [], "a shell block without an assertion");
});

test("guide refunds: its shell blocks give the described results", async () => {
  const { headings, after } = await follow("refunds.md");
  const [refundable, atOnce] = after("As a buyer");
  assert.match(
    refundable!,
    /^"refundable":\{"until":"[^"]+","amount":10,"reasonIfNot":null,"approval":"instant",[^}]*\}$/,
  );
  const { status, decidedBy } = JSON.parse(atOnce!).data;
  assert.deepEqual([status, decidedBy], ["succeeded", "rules"]);
  const [window, rejected, approved] = after("As a seller");
  assert.equal(window, '"refundDays":30');
  const decisions = [rejected, approved].map((text) => JSON.parse(text!).data);
  assert.deepEqual(
    decisions.map((refund) => [refund.status, refund.decidedBy, refund.decisionNote]),
    [
      ["rejected", "seller", "It is a haiku, every morning."],
      ["succeeded", "seller", null],
    ],
  );
  const [order] = after("Disputes").map((text) => JSON.parse(text).data);
  assert.deepEqual([order.status, order.entitlement.status, order.refunds], ["refunded", "revoked", []]);
  assert.deepEqual(
    order.events.map(({ type }: { type: string }) => type),
    ["purchase.created", "purchase.completed", "dispute.opened", "dispute.lost"],
  );
  assert.deepEqual(
    headings,
    ["Refunds and disputes", "As a buyer", "As a seller", "Disputes"],
    "a shell block without an assertion",
  );
});

test("guide import-export: its shell blocks give the described results", async () => {
  const blocks = await blocksOf("import-export.md");
  const example = "http://127.0.0.1:4000";
  assert.ok(blocks[0]!.lines.includes(example));
  blocks[0]!.lines = blocks[0]!.lines.replace(example, service.origin);
  const output = await run(blocks, { STOA_DATA_DIR: folder.path });
  const [, first, again, checked, published, exported, back, ...others] = output;
  assert.deepEqual(others, [], "a shell block without an assertion");
  assert.match(first!, /^created: 1\nupdated: 0\nunchanged: 0$/m);
  assert.match(again!, /^created: 0\nupdated: 0\nunchanged: 1$/m);
  assert.deepEqual(
    checked!.split("\n").filter((line) => line.startsWith("haiku.md")),
    ["haiku.md:5: price: price must be positive", "haiku.md:6: categroy: is not known here"],
  );
  const { success, data } = JSON.parse(published!);
  assert.deepEqual([success, data.updated, data.published], [true, 1, 1]);
  assert.match(exported!, /"id":"prod_[a-z0-9]{26}","status":"published","title":"Haiku about anything"/);
  assert.deepEqual(JSON.parse(back!).data.unchanged, 1);
});

test("guide files: its shell blocks give the described results", async () => {
  const blocks = await keyedBlocksOf("files.md");
  const [, added, downloaded, image, moved, removed, ...others] = await run(blocks);
  assert.equal(JSON.parse(added!).data.name, "guide.md");
  assert.equal(downloaded, "# How to use it\n\nName a topic.");
  assert.equal(JSON.parse(image!).data.alt, "A drop of rain");
  assert.equal(JSON.parse(moved!).data.alt, "Rain on a window");
  assert.equal(removed!.match(/"success":true/g)?.length, 2);
  assert.deepEqual(others, [], "a shell block without an assertion");
});

test("guide payments: its shell blocks give the described results", async () => {
  const blocks = await keyedBlocksOf("payments.md");
  const [, bought, quoted, cardPage, methods, confirmed, chosenPlan, changedPlan, ...others] =
    await run(blocks);
  const [declined, paid] = answersIn(bought!);
  assert.equal(declined.error.details.declineCode, "card_declined");
  assert.equal(paid.data.status, "completed");
  const [quote] = answersIn(quoted!);
  assert.equal(quote.data.lines.total, quote.data.expectedPrice);
  assert.match(answersIn(cardPage!)[0]!.data.url, /\/dev\/payments\/cards\//);
  const [chosen, removed] = answersIn(methods!);
  assert.deepEqual([chosen.data.isDefault, removed.data], [true, { id: chosen.data.id, deleted: true }]);
  assert.equal(answersIn(confirmed!)[0]!.data.status, "completed");
  const [pro, payments] = answersIn(chosenPlan!);
  assert.deepEqual([pro.data.plan, payments.data[0].status], ["pro", "completed"]);
  assert.match(payments.data[0].receipt.number, /^R-STOA-\d{4}-\d{5}$/);
  const [cancelled, resumed] = answersIn(changedPlan!);
  assert.deepEqual([cancelled.data.scheduled.plan, resumed.data.scheduled], ["free", null]);
  assert.deepEqual(others, [], "a shell block without an assertion");
});

/** Splits curl's output into its answers. */
const answersIn = (output: string) =>
  output
    .trim()
    .replaceAll('}{"success"', '}\n{"success"')
    .split("\n")
    .map((line) => JSON.parse(line));

test("guide webhooks: its shell blocks give the described results", async () => {
  const blocks = await keyedBlocksOf("webhooks.md");
  const [, arrived, looked, rotated, stream, egress, ...others] = await run(blocks);
  const [sent, inbox] = answersIn(arrived!);
  assert.equal(sent.data.eventType, "test");
  assert.deepEqual([inbox.data.length, inbox.data[0].signature], [1, "right"]);
  const [delivery, recovery, stats] = answersIn(looked!);
  assert.deepEqual([delivery.data.status, delivery.data.attempts.length], ["succeeded", 2]);
  assert.match(recovery.data.id, /^rcv_/);
  assert.equal(stats.data.deliveries.succeeded, 1);
  assert.match(answersIn(rotated!)[0]!.data.secret, /^whsec_/);
  const { eventId } = delivery.data;
  assert.ok(stream!.includes(`id: ${eventId}\nevent: test\ndata: {"id":"${eventId}"`), stream);
  assert.deepEqual(answersIn(egress!)[0]!.data, { addresses: [] });
  assert.deepEqual(others, [], "a shell block without an assertion");
});

test("guide running: its shell blocks give the described results", async () => {
  const blocks = await keyedBlocksOf("running.md");
  const [, whole, estimated, streamed, resumed, accepted, canceled, shared, read, ...others] =
    await run(blocks);
  const { output } = JSON.parse(whole!).data;
  assert.deepEqual(JSON.parse(estimated!).data.cost, { min: 0, max: 0 });
  assert.match(output, /^\[sandbox\] /);
  const textOf = (stream: string) =>
    [...stream.matchAll(/^event: output\.delta\ndata: (.*)$/gm)]
      .map(([, data]) => JSON.parse(data!).text)
      .join("");
  assert.deepEqual([textOf(streamed!), textOf(resumed!)], [output, output.slice(10)]);
  for (const stream of [streamed!, resumed!]) assert.match(stream, /id: end\nevent: execution\.completed\n/);
  const { eventsUrl, executionId } = JSON.parse(accepted!).data;
  assert.ok(eventsUrl.endsWith(`/v1/ai/executions/${executionId}/events`));
  const states = answersIn(canceled!).map(({ data }) => [data.id, data.status]);
  assert.deepEqual(states, [
    [executionId, "canceled"],
    [executionId, "canceled"],
  ]);
  assert.match(JSON.parse(shared!).data.url, /\/shared\/[\w-]{32}$/);
  const [sharedRun, ended] = answersIn(read!).map(({ data }) => data);
  assert.deepEqual([sharedRun.input, ended.shared], [{ topic: "rain" }, false]);
  assert.deepEqual(others, [], "a shell block without an assertion");
});

test("guide workflows: its shell blocks give the described results", async () => {
  const [, ran, ...others] = await run(await keyedBlocksOf("workflows.md"));
  const [steps, decided] = answersIn(ran!.slice(0, ran!.indexOf("retry: ")));
  const [ok, draft] = steps.data;
  assert.deepEqual([ok.status, ok.prompt, draft.status], ["waiting", "Shall it go out?", "completed"]);
  assert.equal(decided.data.decision, "approved");
  const [, completed] = /^event: execution\.completed\ndata: (.*)$/m.exec(ran!)!;
  assert.deepEqual(
    [JSON.parse(completed!).status, JSON.parse(completed!).output],
    ["completed", draft.output],
  );
  assert.deepEqual(others, [], "a shell block without an assertion");
});

test(
  "guide operating: its shell blocks back up and restore, and an earlier API key works afterwards",
  inFullRun,
  async (t) => {
    const settings = { STOA_DATA_DIR: folder.path };
    const line = "npx stoa-server key create --user newcomer@stoa.example --name before --json";
    const { key } = JSON.parse((await shell(line, settings)).stdout);
    const printed = await run(await blocksOf("operating.md"), settings);
    const [backedUp, restored, keys, rotated, rebuilt, checked, ...others] = printed;
    assert.deepEqual(others, [], "a shell block without an assertion");
    assert.match(backedUp!, /^keys: wrapped$/m);
    assert.match(restored!, /^keys: put into the data folder$/m);
    assert.match(keys!, /^STOA_MASTER_KEYS=1:\S{44}\nSTOA_SESSION_KEYS=1:\S{44}$/);
    assert.match(rotated!, /^key: 1\nrewrapped: 0$/m);
    assert.match(rebuilt!, /^sums: \d+\nchanged: \d+\nremoved: 0$/);
    assert.match(checked!, /^.*processes.*: .*they open at most \d+ of the \d+ connections/m);
    const made = /^file: (.+)\/shop\.tar\.gz$/m.exec(backedUp!)![1]!;
    const other = await npmStart(join(made, "data"));
    t.after(async () => {
      await stop(other);
      await rm(made, { recursive: true });
    });
    const products = async ({ origin }: Started) => {
      const reply = await fetch(`${origin}/v1/products?sort=price&order=asc`, {
        headers: { authorization: `Bearer ${key}` },
      });
      return (await reply.json()) as { data: { id: string }[]; meta: { total: number } };
    };
    const [was, is] = [await products(service), await products(other)];
    assert.ok(is.meta.total > 100);
    assert.deepEqual(
      [is.meta.total, is.data.map(({ id }) => id)],
      [was.meta.total, was.data.map(({ id }) => id)],
    );
  },
);

test("guide cli: its shell blocks give the described results", async () => {
  const blocks = await keyedBlocksOf("cli.md");
  const project = await temporaryFolder();
  const bin = new URL("../node_modules/.bin", import.meta.url).pathname;
  const output = await run(blocks, {
    PATH: `${bin}:${process.env["PATH"]}`,
    XDG_CONFIG_HOME: project.path,
    TMPDIR: project.path,
  });
  await project.remove();
  const by = (heading: string) => output[blocks.findIndex((block) => block.heading === heading)]!;
  assert.match(by("Log in"), /^email {2}/m);
  assert.match(
    by("Buy and run a prompt"),
    /^prod_\w+\tEnglish Pronunciation Helper\t.*^\[sandbox\].*^ord_/ms,
  );
  assert.match(by("Publish from files"), /^prod_/m);
  assert.match(
    by("Receive webhooks on this machine"),
    /^purchase\.completed\t.*^type +product\.published$.*\tproduct\.published\tevt_/ms,
  );
  assert.match(by("Sell"), /^net revenue/m);
  const [, chosen, columns, raw] = /^(\[.*?^\])\n(prod_.*?)\n(\{.*)$/ms.exec(by("Use it in scripts"))!;
  assert.deepEqual(Object.keys(JSON.parse(chosen!)[0]), ["id", "title"]);
  assert.match(columns!, /^prod_\w+\t\d[\d.]*\nprod_\w+\t\d[\d.]*$/);
  assert.equal(JSON.parse(raw!).data.length, 1);
  assert.match(by("When something does not work"), /^ok {3}account: /m);
  assert.equal(blocks.length, 7, "a shell block without an assertion");
});
