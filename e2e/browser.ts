import { mkdir } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import chromium from "@sparticuz/chromium";
import { failureNotes } from "@stoa/service/test/failure-notes.ts";
import { isFullSize } from "@stoa/service/test/full-size.ts";
import {
  type Browser,
  type BrowserContext,
  type Page,
  chromium as playwright,
  type Request,
} from "playwright-core";
import { once } from "./once.ts";

/** A folder for screenshots of the pages. */
const PICTURES = process.env["STOA_PICTURES"];

/** Long, since the machine may be busy. */
const TIMEOUT_MS = 120_000;

/** Of a page, in the report of a failed test. */
const REQUESTS_SHOWN = 12;
/** Characters. */
const TEXT_SHOWN = 3_000;
/** A page whose script hangs must not hold back the report. */
const DESCRIBING_MS = 5_000;

// Our pages use no WebGL, and emulating a graphics card doubles the time.
chromium.setGraphicsMode = false;

/**
 * Arguments of the package that the tests remove: those that disable checks of a visitor's browser, the one-process
 * mode, which dies with the first closed page, and a new process for each page.
 */
const UNWANTED_ARGUMENTS = new Set([
  "--single-process",
  "--no-zygote",
  "--allow-running-insecure-content",
  "--disable-site-isolation-trials",
  "--disable-web-security",
]);

/** A browser that runs until it is closed. */
export const launchBrowser = async (): Promise<Browser> =>
  playwright.launch({
    timeout: TIMEOUT_MS,
    executablePath: process.env["CHROMIUM_PATH"] ?? (await unpackedBrowser()),
    args: [
      ...chromium.args.filter((argument) => !UNWANTED_ARGUMENTS.has(argument)),
      "--disable-background-networking",
      "--disable-component-update",
    ],
  });

let shared: Promise<Browser> | null = null;

/** One browser for all files of a worker, which ends with the worker. `close` closes the pages of a file. */
export function openBrowser(): Promise<Browser> {
  shared ??= launchSharedBrowser().catch((error) => {
    shared = null;
    throw error;
  });
  return shared;
}

async function launchSharedBrowser(): Promise<Browser> {
  const browser = await launchBrowser();
  browser.close = async () => {
    await Promise.all(browser.contexts().map((context) => context.close()));
  };
  // After a crash, the next file starts another one.
  browser.on("disconnected", () => {
    shared = null;
  });
  return browser;
}

/** Unpacked once into the path that all files use: a parallel start would run an incomplete program. */
async function unpackedBrowser(): Promise<string> {
  await once("unpacking the browser", () => chromium.executablePath());
  return chromium.executablePath();
}

export interface Look {
  scheme?: "light" | "dark";
  width?: number;
}

/**
 * The color schemes and widths in which each page is tested: without the full run the narrowest, which overflows first.
 * Contrast does not depend on the width, nor overflow on the scheme.
 */
export const looks = (
  [
    { scheme: "dark", width: 320 },
    { scheme: "light", width: 1200 },
  ] as const
).slice(0, isFullSize ? undefined : 1);

/** The page's requests to other origins, and its console errors. */
export interface Watched {
  page: Page;
  foreign: string[];
  complaints: string[];
}

export async function openContext(browser: Browser, { scheme = "light", width = 1200 }: Look = {}) {
  const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height: 900 } });
  context.setDefaultTimeout(TIMEOUT_MS);
  return context;
}

export async function openPage(context: BrowserContext, origin: string): Promise<Watched> {
  const page = await context.newPage();
  const foreign: string[] = [];
  const complaints: string[] = [];
  page.on("request", (request) => {
    if (!request.url().startsWith(origin) && !/^(data|blob):/.test(request.url()))
      foreign.push(request.url());
  });
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  describeOnFailure(page);
  return { page, foreign, complaints };
}

/** The report of a failed test has the text of the open pages and their last requests. */
function describeOnFailure(page: Page): void {
  const requests: Request[] = [];
  page.on("request", (request) => {
    requests.push(request);
    if (requests.length > REQUESTS_SHOWN) requests.shift();
  });
  const describe = async () => {
    const text = await Promise.race([
      page.evaluate("document.body.innerText").catch(String),
      setTimeout(DESCRIBING_MS, "The page does not answer.", { ref: false }),
    ]);
    const lines = requests.map((request) => `${request.method()} ${request.url()} ${resultOf(request)}`);
    return [`Page ${page.url()}`, String(text).slice(0, TEXT_SHOWN), ...lines].join("\n");
  };
  failureNotes.add(describe);
  page.once("close", () => failureNotes.delete(describe));
}

const resultOf = (request: Request): string =>
  String(request.failure()?.errorText ?? request.existingResponse()?.status() ?? "has no response yet");

export const click = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click();
export const sees = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor();

export async function takePicture(page: Page, name: string): Promise<void> {
  if (!PICTURES) return;
  await mkdir(PICTURES, { recursive: true });
  const isDark = await page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches");
  const look = `${isDark ? "dark" : "light"}-${page.viewportSize()?.width}`;
  const path = `${PICTURES}/${name.replaceAll(/\W+/g, "_")}-${look}.png`;
  await page.screenshot({ path, fullPage: true });
}

/** Pixels by which the page is wider than its window. */
export const overflowOf = async (page: Page): Promise<number> =>
  Number(await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"));
