import assert from "node:assert/strict";
import { after, before, suite } from "node:test";
import { buyProduct, createProduct, haiku } from "@stoa/service/test/factories.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { GOOD_KEY, type ProviderServer, startProviderServer } from "@stoa/service/test/provider-server.ts";
import { gatedPieces } from "@stoa/service/test/run-streams.ts";
import { createProviderKey, providersAt, runToCompletion } from "@stoa/service/test/runs.ts";
import {
  createWorkflow,
  definitionOf,
  echoStep,
  promptStep,
  startExecution,
  startWorker,
  transformStep,
} from "@stoa/service/test/workflows.ts";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { click, looks, openBrowser, openContext, sees } from "./browser.ts";
import { everyRun, test } from "./full-run.ts";
import { visitEach } from "./members.ts";
import { buildWebClient, mustBeSound, openWebPage, signIn, type WebPage } from "./web.ts";

let provider: ProviderServer;
let market: Market;
let worker: ReturnType<typeof startWorker>;
let browser: Browser;
let seller: Client;
let buyer: Client;
let poet: string;
before(async () => {
  await buildWebClient();
  provider = await startProviderServer();
  market = await openMarket({ providers: providersAt(provider) });
  worker = startWorker(market);
  seller = await market.createUser({ name: "The Quiet Editor" });
  buyer = await market.createUser({ name: "Ada" });
  poet = await createProduct(seller, { title: "Poet", description: "Three lines about anything." });
  await buyProduct(buyer, poet);
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await worker?.stop();
  await market.close();
  await provider.close();
});

/** The browser of a member. */
async function openBrowserOf(user: Client, look = {}): Promise<BrowserContext> {
  const context = await openContext(browser, look);
  await signIn(context, market.origin, await market.createSession(user.userId));
  return context;
}

/** A page of the web client for a member, in a browser of its own. */
async function openAs(user: Client, path: string): Promise<WebPage & { close(): Promise<void> }> {
  const context = await openBrowserOf(user);
  const watched = await openWebPage(context, market.origin);
  await watched.page.goto(market.origin + path);
  return { ...watched, close: () => context.close() };
}

const runsOf = async (user: Client) => (await user.get("/v1/ai/executions")).body.data;
const runButton = (page: Page) => page.locator(".run-button:visible");

suite("running a prompt", () => {
  everyRun("streamed words, the cost before and after, and stop: what was written stays", async () => {
    const ada = await market.createUser({ name: "Ada" });
    await buyProduct(ada, poet);
    await createProviderKey(ada);
    const watched = await openAs(ada, `/run/${poet}`);
    const { page } = watched;
    await page.getByLabel("topic").fill("rain");
    await sees(page, /Run, about \$0\.00/);
    const { gate, allow } = gatedPieces();
    provider.next({ stream: { pieces: ["Rain ", "on ", "the ", "roof"], gate } });
    await page.keyboard.press("Control+Enter");
    allow(2);
    await sees(page, "Rain on");
    await sees(page, "Streaming");
    await mustBeSound(watched, "prompt while it streams", { isLive: true });
    await page.keyboard.press("Escape");
    await sees(page, "You stopped this run.");
    await sees(page, "Rain on");
    const [run] = await runsOf(ada);
    assert.equal(run.status, "canceled");
    assert.ok(page.url().endsWith(`run=${run.id}`));
    await mustBeSound(watched, "prompt that was stopped");
    await watched.close();
  });

  test("a page that is loaded anew during the stream: shows the run to its end, and its input", async () => {
    const ada = await market.createUser({ name: "Ada" });
    await buyProduct(ada, poet);
    await createProviderKey(ada);
    const watched = await openAs(ada, `/run/${poet}`);
    const { page } = watched;
    await page.getByLabel("topic").fill("snow");
    await sees(page, /Run, about/);
    const { gate, allow, allowAll } = gatedPieces();
    provider.next({ stream: { pieces: ["# Snow\n\n", "falls **slow**"], gate } });
    await runButton(page).click();
    allow(1);
    await page.getByRole("heading", { name: "Snow" }).waitFor();
    await page.reload();
    await page.getByRole("heading", { name: "Snow" }).waitFor();
    assert.equal(await page.getByLabel("topic").inputValue(), "snow");
    allowAll();
    await page.locator(".run-output strong", { hasText: "slow" }).waitFor();
    await sees(page, "Completed");
    await sees(page, /\$0\.0000/);
    assert.equal((await runsOf(ada)).length, 1);
    await mustBeSound(watched, "prompt that has completed");
    await watched.close();
  });

  test("a missing value: its sentence beside the field, and no request; the text of the others stays", async () => {
    const watched = await openAs(buyer, `/run/${poet}`);
    const { page, calls } = watched;
    await page.getByLabel("language").fill("Turkish");
    await runButton(page).click();
    await sees(page, "1 field needs a change");
    await sees(page, "Enter a text.");
    assert.equal(await page.getByLabel("language").inputValue(), "Turkish");
    assert.deepEqual(
      calls.filter((call) => call.startsWith("POST")),
      [],
    );
    await mustBeSound(watched, "prompt with a missing value");
    await watched.close();
  });

  test("a double click and Ctrl+Enter at once: one run", async () => {
    const ada = await market.createUser({ name: "Ada" });
    await buyProduct(ada, poet);
    const watched = await openAs(ada, `/run/${poet}`);
    const { page } = watched;
    await page.getByLabel("topic").fill("rain");
    await sees(page, "Run, free");
    // At once: a run in the sandbox ends within milliseconds.
    await page.evaluate(`(() => {
      const button = [...document.querySelectorAll(".run-button")].find(({ offsetParent }) => offsetParent);
      button.click();
      button.click();
      document.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", ctrlKey: true }));
    })()`);
    await sees(page, "Completed");
    assert.equal((await runsOf(ada)).length, 1);
    await watched.close();
  });

  test("the first provider key: added on the way, refused, replaced, and then used", async () => {
    const ada = await market.createUser({ name: "Ada" });
    await buyProduct(ada, poet);
    const watched = await openAs(ada, `/run/${poet}`);
    const { page } = watched;
    await page.getByLabel("topic").fill("rain");
    await click(page, "Add a key");
    await page.getByLabel("Name, optional").fill("Work");
    await page.getByLabel("Key of OpenAI").fill("wrong");
    await click(page, "Add key");
    await sees(page, "OpenAI refuses this key. Check it, then store it again.");
    await page.getByLabel("Key of OpenAI").fill(GOOD_KEY);
    await mustBeSound(watched, "adding a provider key");
    await click(page, "Replace key");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByText("OpenAI: Work, ends in -key").first().waitFor({ state: "attached" });
    assert.equal(await page.getByLabel("topic").inputValue(), "rain");
    await sees(page, /Run, about/);
    provider.next({ answer: { text: "An umbrella." } });
    await runButton(page).click();
    await sees(page, "An umbrella.");
    await sees(page, "Completed");
    await watched.close();
  });

  test("a provider that refuses: its name, the key's last characters, and what to do", async () => {
    const ada = await market.createUser({ name: "Ada" });
    await buyProduct(ada, poet);
    await createProviderKey(ada);
    const watched = await openAs(ada, `/run/${poet}`);
    const { page } = watched;
    await page.getByLabel("topic").fill("rain");
    await sees(page, /Run, about/);
    provider.next("bad-key");
    await runButton(page).click();
    await sees(page, "OpenAI refused the key that ends in -key.");
    await sees(page, "Replace this key");
    await mustBeSound(watched, "prompt that was refused");
    await watched.close();
  });

  test("a plan's limit of active runs: says so, and keeps the form", async () => {
    const ada = await market.createUser({ name: "Ada" });
    await buyProduct(ada, poet);
    const watched = await openAs(ada, `/run/${poet}`);
    const { page } = watched;
    await page.route("**/v1/ai/execute", (route) =>
      route.fulfill({
        status: 429,
        headers: { "retry-after": "240" },
        contentType: "application/json",
        body: JSON.stringify({
          success: false,
          error: { code: "RATE_LIMIT_EXCEEDED", message: "100 requests an hour are used up." },
        }),
      }),
    );
    await page.getByLabel("topic").fill("rain");
    await sees(page, "Run, free");
    await runButton(page).click();
    await sees(page, "100 requests an hour are used up.");
    await sees(page, "The next request works in 4 min.");
    assert.equal(await page.getByLabel("topic").inputValue(), "rain");
    await watched.close();
  });
});

test("a session that ends in the middle of the form, and a lost connection: the text stays, and both recover", async () => {
  const ada = await market.createUser({ name: "Ada" });
  await buyProduct(ada, poet);
  const watched = await openAs(ada, `/run/${poet}`);
  const { page } = watched;
  await page.getByLabel("topic").fill("rain");
  await sees(page, "Run, free");
  const context = page.context();
  const cookies = await context.cookies();
  await context.clearCookies();
  await runButton(page).click();
  await sees(page, "Your session ended.");
  assert.equal(await page.getByLabel("topic").inputValue(), "rain");
  await context.addCookies(cookies);
  await click(page, "Go on");
  await page.getByText("Your session ended.").waitFor({ state: "detached" });
  // The service carries the run out, but its response is lost: the next click must not start another.
  let isLost = true;
  await page.route("**/v1/ai/execute", async (route) => {
    if (!isLost) return route.continue();
    await route.fetch();
    return route.abort("connectionreset");
  });
  await runButton(page).click();
  await sees(page, "The run did not start.");
  isLost = false;
  await runButton(page).click();
  await sees(page, "Completed");
  assert.equal((await runsOf(ada)).length, 1);
  await watched.close();
});

test("share a run and end the link: visitors read it until then", async () => {
  const ada = await market.createUser({ name: "Ada" });
  await buyProduct(ada, poet);
  const { executionId } = await runToCompletion(ada, { productId: poet });
  const watched = await openAs(ada, `/runs/${executionId}`);
  const { page } = watched;
  await click(page, "Share");
  await click(page, "Create the link");
  const url = await page.getByRole("textbox", { name: "Public link" }).inputValue();
  const visitor = await openContext(browser);
  const shared = await openWebPage(visitor, market.origin);
  await shared.page.goto(url);
  await sees(shared.page, /\[sandbox\]/);
  await mustBeSound(shared, "shared run");
  assert.deepEqual(shared.calls, []);
  await mustBeSound(watched, "sharing a run");
  await click(page, "End the link");
  await sees(page, "The link no longer works");
  await shared.page.reload();
  await sees(shared.page, "This page does not exist");
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  await click(page, "Receipt");
  await sees(page, "Receipt of this run");
  await mustBeSound(watched, "receipt of a run");
  await click(page, "Done");
  await click(page, "Delete");
  await click(page, "Delete the run");
  await sees(page, "The run is deleted");
  await sees(page, "No runs yet");
  await visitor.close();
  await watched.close();
});

test("compare two models and versions: both stream, the address keeps them, and a reload shows them", async () => {
  const ada = await market.createUser({ name: "Ada" });
  await buyProduct(ada, poet);
  await createProviderKey(ada);
  const watched = await openAs(ada, `/run/${poet}`);
  const { page } = watched;
  await page.getByLabel("topic").fill("rain");
  await page.getByRole("link", { name: "Compare" }).click();
  const columns = page.locator(".compare-column");
  await columns.nth(1).getByLabel("Provider key").selectOption("sandbox");
  await sees(page, /Run 2, about \$0\.00/);
  provider.next({ answer: { text: "Rain, by OpenAI." } });
  await runButton(page).click();
  await columns.nth(0).getByText("Rain, by OpenAI.").waitFor();
  await columns.nth(1).getByText("[sandbox]").first().waitFor();
  assert.equal((await runsOf(ada)).length, 2);
  await page.reload();
  await columns.nth(0).getByText("Rain, by OpenAI.").waitFor();
  await columns.nth(1).getByText("[sandbox]").first().waitFor();
  await mustBeSound(watched, "two models side by side");
  await watched.close();
});

const DEFINITION = definitionOf({
  input: {
    type: "object",
    required: ["topic"],
    properties: {
      topic: { type: "string", title: "Topic", maxLength: 100 },
      parts: { type: "integer", default: 2, minimum: 1, maximum: 5 },
      formal: { type: "boolean", description: "Write formally" },
    },
  },
  steps: [
    promptStep("outline", "Outline"),
    promptStep("check", "Check", { needs: ["outline"] }),
    {
      ...{ id: "ok", type: "approval", needs: ["outline", "check"], timeoutSeconds: 86_400 },
      prompt: "May it be published?",
    },
    transformStep("join", "steps.outline.output + ' / ' + steps.check.output", {
      needs: ["ok", "outline", "check"],
    }),
  ],
  result: "steps.join.output",
});

suite("running a workflow", () => {
  let workflow: string;
  before(async () => {
    workflow = await createProduct(seller, {
      ...{ ...haiku, type: "WORKFLOW", compatibility: undefined },
      ...{ title: "Translation with a Second Look", content: DEFINITION },
    });
  });

  everyRun("with an approval: the graph fills, and the result appears after Approve", async () => {
    const ada = await market.createUser({ name: "Ada" });
    await buyProduct(ada, workflow);
    await createProviderKey(ada);
    const watched = await openAs(ada, `/run/${workflow}`);
    const { page } = watched;
    await runButton(page).click();
    await sees(page, "1 field needs a change.");
    await page.getByLabel("Topic").fill("rain");
    await page.getByLabel("parts").fill("9");
    await sees(page, "Enter a whole number from 1 to 5.");
    await page.getByLabel("parts").fill("3");
    await sees(page, /Run, about \$0\.00/);
    await mustBeSound(watched, "form of a workflow");
    provider.next({ answer: { text: "First **sun**, then rain." } });
    await runButton(page).click();
    await sees(page, "May it be published?");
    await page.getByRole("link", { name: /^outline.*completed/ }).waitFor();
    await page.getByRole("link", { name: /^ok.*waits for your approval/ }).waitFor();
    await sees(page, "Waits for your approval");
    await page.locator(".said strong", { hasText: "sun" }).waitFor();
    await mustBeSound(watched, "workflow that waits for approval");
    await click(page, "Approve");
    await sees(page, "Result");
    await sees(page, /First sun, then rain\.|An answer\./);
    await page.getByRole("link", { name: /^join.*completed/ }).waitFor();
    await mustBeSound(watched, "workflow that has completed");
    await watched.close();
  });

  test("a step that fails: who refused, and the retry repeats that step only", async () => {
    const ada = await market.createUser({ name: "Ada" });
    await buyProduct(ada, workflow);
    const openai = await createProviderKey(ada);
    provider.next({ answer: { text: "An outline." } });
    provider.next("bad-key");
    const id = await startExecution(ada, workflow, { input: { topic: "rain" }, apiKeys: { openai } });
    const watched = await openAs(ada, `/run/${workflow}?run=${id}`);
    const { page } = watched;
    await sees(page, "Failed at check");
    await sees(page, "OpenAI refused your key.");
    await mustBeSound(watched, "workflow that has failed");
    const before = provider.requests.length;
    await ada.post(`/v1/ai/keys/${openai}/verify`);
    await page.getByRole("button", { name: /^Retry from check/ }).click();
    await sees(page, "May it be published?");
    const posts = provider.requests.slice(before).filter(({ method }) => method === "POST");
    assert.equal(posts.length, 1);
    await click(page, "Reject");
    await sees(page, "Failed at ok");
    await page.goto(`${market.origin}/runs/${id}`);
    await page.getByRole("link", { name: /^join.*not started/ }).waitFor();
    await watched.close();
  });

  test("with the sandbox: starts free, is canceled while it waits, and fills the form to run again", async () => {
    const ada = await market.createUser({ name: "Ada" });
    await buyProduct(ada, workflow);
    const watched = await openAs(ada, `/run/${workflow}`);
    const { page } = watched;
    await page.getByLabel("Topic").fill("rain");
    await sees(page, "Run, free");
    await runButton(page).dblclick();
    await sees(page, "May it be published?");
    await click(page, "Cancel run");
    await sees(page, "You stopped this run.");
    await page.getByRole("button", { name: "Retry the run, free" }).waitFor();
    await page.getByRole("link", { name: "Run again" }).click();
    await page.getByLabel("Topic").waitFor();
    assert.equal(await page.getByLabel("Topic").inputValue(), "rain");
    assert.equal((await runsOf(ada)).length, 1);
    await watched.close();
  });
});

/** What a seller or a model may write to harm readers, or by accident. */
const HOSTILE =
  "<script>alert(1)</script> [click](javascript:alert(1)) ![pixel](https://evil.example/p.png) 👩‍👩‍👧 עברית";

for (const { scheme, width } of looks) {
  test(`pages of runs, ${width} pixels, ${scheme}: sound, also with hostile texts`, async () => {
    const ada = await market.createUser({ name: "Ada" });
    const key = await createProviderKey(ada, { name: HOSTILE.slice(0, 60) });
    const hostile = await createProduct(ada, {
      title: `${HOSTILE.slice(0, 40)} ${"x".repeat(50)}`,
      content: "{{topic}} {{tone}}",
      variables: [
        { name: "topic", description: HOSTILE },
        { name: "tone", enum: ["plain", "x".repeat(200)], default: "plain", required: false },
      ],
    });
    provider.next({
      answer: {
        text: `${HOSTILE}\n\n| a | b |\n|---|---|\n| ${"wide".repeat(80)} | c |\n\n${"x".repeat(400)}`,
      },
    });
    const done = await runToCompletion(ada, {
      ...{ productId: hostile, apiKeyId: key },
      variables: { topic: `${HOSTILE} ${"y".repeat(300)}` },
    });
    const waiting = await createWorkflow(
      ada,
      {
        steps: [
          echoStep("a_step_with_a_very_long_name_that_does_not_fit_anywhere", HOSTILE),
          {
            id: "items",
            type: "map",
            items: "['one', 'two']",
            do: { ...echoStep("x", "{{i}}", { vars: { i: "item" } }), id: undefined },
          },
          {
            ...{ id: "ok", type: "approval", timeoutSeconds: 600, prompt: HOSTILE },
            needs: ["a_step_with_a_very_long_name_that_does_not_fit_anywhere", "items"],
          },
        ],
      },
      { title: `Waits ${"w".repeat(60)}` },
    );
    const asked = await startExecution(ada, waiting);
    const { body } = await ada.post(`/v1/ai/executions/${done.executionId}/share`);
    const shared = new URL(body.data.url).pathname;
    const context = await openBrowserOf(ada, { scheme, width });
    const pages = [
      [`/run/${hostile}`, "The answer appears here"],
      [`/run/${hostile}?run=${done.executionId}`, "Completed"],
      [`/run/${hostile}?tab=history`, "Choose 2 to 4 runs"],
      [`/run/${hostile}?tab=compare&runs=${done.executionId}`, "Completed"],
      [`/run/${waiting}`, "This workflow asks for nothing"],
      [`/run/${waiting}?run=${asked}`, "Waits for your approval"],
      [`/runs/${asked}?step=items`, "Item"],
      [`/runs/${done.executionId}`, "Run again"],
      ["/runs", "Workflows"],
      [shared, "<script>alert(1)</script>"],
      [`/run/${poet}`, "Buy for"],
    ] as const;
    await visitEach(context, market, pages, async (watched, [path, text]) => {
      await sees(watched.page, text);
      const name = path.replace(/\w+_[0-9a-z]{26}/g, "id").replace(/\/shared.*/, "/shared");
      await mustBeSound(watched, name, { isLive: path.includes(asked) });
    });
    await context.close();
  });
}

test("an account without runs, and runs that are gone: a next step in each place", async () => {
  const nobody = await market.createUser();
  const gone = "exec_01h455vb4pex5vsknk084sn02q";
  for (const [path, text] of [
    ["/runs", "No runs yet"],
    [`/runs/${gone}`, "This page does not exist"],
    ["/run/prod_01h455vb4pex5vsknk084sn02q", "This page does not exist"],
    ["/shared/nothing", "This page does not exist"],
  ] as const) {
    const watched = await openAs(nobody, path);
    await sees(watched.page, text);
    await watched.close();
  }
  const watched = await openAs(buyer, `/run/${poet}?run=${gone}`);
  await sees(watched.page, /No execution of yours|does not exist|not found/i);
  await watched.page.getByLabel("topic").waitFor();
  await watched.close();
});
