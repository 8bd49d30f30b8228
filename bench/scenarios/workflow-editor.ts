import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import chromium from "@sparticuz/chromium";
import { createUser } from "@stoa/service/accounts/people/users.ts";
import { startOperatorSession } from "@stoa/service/accounts/sign-in/operator-session.ts";
import { createLog } from "@stoa/service/core/log.ts";
import { startEmbedded } from "@stoa/service/platform/db/embedded.ts";
import { WebBuilds } from "@stoa/service/web/builds/web-builds.ts";
import { type Browser, type BrowserContext, chromium as browsers, type Page } from "playwright-core";
import { keepAwake } from "../awake.ts";
import { traceMainThread } from "../main-thread.ts";
import type { Options } from "../options.ts";
import { atEnd } from "../processes.ts";
import { median, type Quantiles, quantilesOf } from "../quantile.ts";
import { comparedWithAim, ms, type Report } from "../report.ts";
import { startService, WITHOUT_LIMITS, withBase } from "../shop.ts";

/** As many as a definition may have, and as a map may have. */
const [STEPS, ITEMS] = [50, 200];
const MAP_STEP = 25;
/** Of the CPU that the aims name, against that of this machine. */
const SLOWDOWN = 4;
const ROUNDS = 5;
const WARM_UP_MOVES = 5;
const MOVES = 60;
const [MIN_OPENED, OPENED] = [5, 30];
const FRAME_MS = 1_000 / 60;
const SETTLE_MS = 600;
const TIMEOUT_MS = 30_000;
const AIMS = { frameMs: 16, openMs: 100 };

interface Scene {
  origin: string;
  session: string;
  productId: string;
  executionId: string;
}

interface Action {
  name: string;
  path: (scene: Scene) => string;
  /** The elements of the steps. */
  steps: string;
  measure: (browser: Browser, page: Page, steps: Place[]) => Promise<number[]>;
  aimMs: number;
}

interface Place {
  id: string;
  x: number;
  y: number;
}

const editor = (view: string) => (scene: Scene) => `/studio/workflows/${scene.productId}?view=${view}`;
const NODES = ".react-flow [data-step]";

const ACTIONS: Action[] = ["canvas", "split"].flatMap((view) => [
  {
    ...{ name: `editor, ${view}: a frame while a step is dragged`, path: editor(view), steps: NODES },
    ...{ measure: dragStep, aimMs: AIMS.frameMs },
  },
  {
    ...{ name: `editor, ${view}: a step opens`, path: editor(view), steps: NODES },
    ...{ measure: openSteps, aimMs: AIMS.openMs },
  },
]);
ACTIONS.push({
  ...{ name: "run: a step opens", path: ({ executionId }) => `/runs/${executionId}`, steps: ".graph a.node" },
  ...{ measure: openSteps, aimMs: AIMS.openMs },
});

/** The largest workflow and its run in a browser: the work of its main thread while steps are dragged and opened. */
export async function measureWorkflowEditor(options: Options): Promise<Report> {
  await new WebBuilds().ensureCurrent(createLog("warn"));
  const scene = await openScene();
  const browser = await openBrowser();
  const actions = ACTIONS.filter(({ name }) => options.questions.test(name));
  const rounds = new Map(actions.map(({ name }) => [name, [] as Quantiles[]]));
  for (let round = 0; round < ROUNDS; round++)
    for (const action of actions) {
      const quantiles = quantilesOf(await keepAwake(() => measure(browser, scene, action)));
      rounds.get(action.name)?.push(quantiles);
      console.error(`${action.name}: ${Object.values(quantiles).map(ms).join(" ")}`);
    }
  return {
    columns: ["what", "p50", "p95", "slowest", "p95 aim", "met"],
    rows: actions.map(({ name, aimMs }) => {
      const of = (key: keyof Quantiles) =>
        median((rounds.get(name) ?? []).map((quantiles) => quantiles[key]));
      const [p50, p95, max] = [of("p50"), of("p95"), of("max")].map((value) => `${ms(value)} ms`);
      return [name, p50!, p95!, max!, ...comparedWithAim("", `≤ ${aimMs} ms`, of("p95") <= aimMs).slice(1)];
    }),
    notes: [
      `${STEPS} steps, one of them a map of ${ITEMS} items, with a completed run; the editor shows all of them, the page of the run a part. CPU time of the page's main thread, from the browser's trace, times ${SLOWDOWN}: the aims are for a CPU that is ${SLOWDOWN} times slower. The browser's own throttling waits by the clock, so that it would count other programs of this machine, too. A frame is all work from a move of the pointer to the next one: script, style, layout, paint and commit. Other threads paint the pixels, and here without a graphics card: they do not count. A step opens from the press of the button to the end of the frame that shows it. Medians of ${ROUNDS} rounds, each on a page that was opened anew, with ${MOVES} moves or up to ${OPENED} steps, the map among them.`,
    ],
  };
}

async function openScene(): Promise<Scene> {
  const dataDir = await mkdtemp(join(tmpdir(), "stoa-bench-editor-"));
  atEnd(() => rm(dataDir, { recursive: true, force: true }));
  const plansFile = join(dataDir, "plans.json");
  await writeFile(plansFile, JSON.stringify(WITHOUT_LIMITS));
  const database = await startEmbedded(dataDir);
  atEnd(() => database.stop());
  const session = await withBase(dataDir, { target: database.connection }, async ({ ctx }) => {
    const author = { email: "author@bench.example", name: "Author", plan: "enterprise" } as const;
    return startOperatorSession(ctx, await createUser(ctx, author));
  });
  const { origin } = await startService(undefined, { STOA_DATA_DIR: dataDir, STOA_PLANS_FILE: plansFile });
  const post = (path: string, body: object) => postAs(session, origin, path, body);
  const product = { title: "Fifty steps", type: "WORKFLOW", price: 5, content: JSON.stringify(DEFINITION) };
  const { id: productId } = await post("/v1/products", product);
  const { executionId, status } = await post(`/v1/ai/workflows/${productId}/execute`, {
    ...{ input: INPUT, apiKeys: { sandbox: "sandbox" } },
  });
  if (status !== "completed") throw new Error(`The run was ${status}`);
  return { origin, session, productId: productId!, executionId: executionId! };
}

async function postAs(session: string, origin: string, path: string, body: object) {
  const headers = {
    ...{ cookie: `__Host-session=${session}`, origin, "sec-fetch-site": "same-origin" },
    ...{ "content-type": "application/json", prefer: "wait=60" },
  };
  const response = await fetch(origin + path, { method: "POST", headers, body: JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(`POST ${path}: ${response.status} ${text}`);
  return (JSON.parse(text) as { data: Record<string, string> }).data;
}

const INPUT = {
  audience: "beginners",
  items: Array.from({ length: ITEMS }, (_, at) => `Item ${at}: ${"a sentence of some words. ".repeat(6)}`),
};

/** Each step needs the one before, each third one two of them. */
function stepAt(at: number): object {
  const before = [at - 1, ...(at % 3 === 2 ? [at - 2] : [])].filter((index) => index >= 0);
  const step = { id: `step${at}`, needs: before.map((index) => `step${index}`) };
  const text = at === 0 ? "input.audience" : `string(size(string(steps.step${at - 1}.output)))`;
  if (at === MAP_STEP)
    return { ...step, type: "map", items: "input.items", do: { type: "transform", value: "item + '!'" } };
  if (at === MAP_STEP + 1)
    return { ...step, type: "transform", value: `string(size(steps.step${at - 1}.output))` };
  if (at % 2 === 0) return { ...step, type: "transform", value: text };
  const messages = [
    { role: "system", content: "Write briefly." },
    { role: "user", content: "Explain {{text}} to {{audience}}." },
  ];
  const vars = { text, audience: "input.audience" };
  return { ...step, type: "prompt", provider: "sandbox", model: "sandbox-echo", messages, vars };
}

const DEFINITION = {
  format: "workflow/1",
  input: {
    type: "object",
    properties: { audience: { type: "string" }, items: { type: "array", items: { type: "string" } } },
    required: ["audience", "items"],
  },
  steps: Array.from({ length: STEPS }, (_, at) => stepAt(at)),
  result: `steps.step${STEPS - 1}.output`,
};

async function openBrowser(): Promise<Browser> {
  // The graphics card is emulated slowly, and no page needs it.
  chromium.setGraphicsMode = false;
  const browser = await browsers.launch({
    executablePath: process.env["CHROMIUM_PATH"] ?? (await chromium.executablePath()),
    args: chromium.args.filter((argument) => argument !== "--single-process"),
    headless: true,
  });
  atEnd(() => browser.close());
  return browser;
}

async function measure(browser: Browser, scene: Scene, action: Action): Promise<number[]> {
  const context = await openContext(browser, scene);
  const page = await context.newPage();
  await page.goto(scene.origin + action.path(scene));
  await page.locator(`${action.steps} >> nth=${STEPS - 1}`).waitFor();
  await page.waitForLoadState("networkidle");
  const times = await action.measure(browser, page, await findSteps(page, action.steps));
  await context.close();
  return times.map((time) => time * SLOWDOWN);
}

async function openContext(browser: Browser, { origin, session }: Scene): Promise<BrowserContext> {
  const context = await browser.newContext({ viewport: { width: 1_400, height: 1_000 } });
  context.setDefaultTimeout(TIMEOUT_MS);
  const cookie = { name: "__Host-session", value: session, domain: new URL(origin).hostname, path: "/" };
  await context.addCookies([{ ...cookie, secure: true, httpOnly: true, sameSite: "Lax" }]);
  return context;
}

/** The steps that a pointer can reach: the map, then its neighbors. */
async function findSteps(page: Page, selector: string): Promise<Place[]> {
  const places: Place[] = await page.evaluate(`(${FIND_STEPS})(${JSON.stringify(selector)})`);
  const distance = ({ id }: Place) => Math.abs(Number(id.slice("step".length)) - MAP_STEP);
  if (places.length < MIN_OPENED) throw new Error(`Only ${places.length} steps are in view`);
  return places.toSorted((a, b) => distance(a) - distance(b)).slice(0, OPENED);
}

/** Runs in the page. */
const FIND_STEPS = `(selector) => [...document.querySelectorAll(selector)].flatMap((element, at, all) => {
  if (at === 0) all[${MAP_STEP}].scrollIntoView({ block: "nearest" });
  const box = element.getBoundingClientRect();
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  const id = element.dataset.step ?? element.title;
  return element.contains(document.elementFromPoint(x, y)) ? [{ id, x, y }] : [];
})`;

/** The CPU time of each frame with a move. */
async function dragStep(browser: Browser, page: Page, [step]: Place[]): Promise<number[]> {
  const { id, x, y } = step!;
  await page.mouse.move(x, y);
  await page.mouse.down();
  const before = await boxOf(page, id);
  for (let at = 0; at < WARM_UP_MOVES; at++) await page.mouse.move(x + at, y);
  await sleep(SETTLE_MS);
  // A move of Playwright's own mouse runs its scripts in the page, too.
  const devTools = await page.context().newCDPSession(page);
  const thread = await traceMainThread(browser, page, async () => {
    for (let at = 0; at < MOVES; at++) {
      const place = { x: x + 120 * Math.sin(at / 12), y: y + (at % 60) };
      const event = { type: "mouseMoved", button: "left", buttons: 1, ...place } as const;
      await devTools.send("Input.dispatchMouseEvent", event);
      await sleep(FRAME_MS);
    }
  });
  if ((await boxOf(page, id)) === before) throw new Error(`${id} did not move`);
  await page.mouse.up();
  const moves = thread.moments("pointermove");
  return moves.slice(1).map((move, at) => thread.cpuBetween(moves[at]!, move));
}

const boxOf = async (page: Page, id: string) =>
  JSON.stringify(await page.locator(`[data-step="${id}"]`).boundingBox());

/** The CPU time from each press of the button to the frame with the step. */
async function openSteps(browser: Browser, page: Page, steps: Place[]): Promise<number[]> {
  await page.evaluate(`(${MARK_SHOWN})()`);
  const thread = await traceMainThread(browser, page, async () => {
    for (const { x, y } of steps) {
      await page.mouse.click(x, y);
      await sleep(SETTLE_MS);
    }
  });
  const shown = thread.moments("shown");
  if (shown.length !== steps.length) throw new Error(`${shown.length} of ${steps.length} steps were shown`);
  return thread.moments("pointerdown").map((press, at) => thread.cpuBetween(press, shown[at]!));
}

/** Runs in the page. A message that is posted in a frame is read after the frame was rendered. */
const MARK_SHOWN = `() => addEventListener("pointerdown", ({ target }) => {
  const step = target.closest("[data-step], a.node");
  const id = step.dataset.step ?? step.title;
  const look = () => requestAnimationFrame(() => {
    if (document.querySelector('[aria-label="Step ' + id + '"]') === null) return look();
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => performance.mark("shown");
    port2.postMessage(null);
  });
  look();
}, { capture: true })`;
