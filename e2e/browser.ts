import { mkdir } from "node:fs/promises";
import chromium from "@sparticuz/chromium";
import { sampleOf } from "@stoa/service/test/full-size.ts";
import { type Browser, type BrowserContext, type Page, chromium as playwright } from "playwright-core";
import { once } from "./once.ts";

/** Set to keep pictures of the pages, to look at them. */
const PICTURES = process.env["STOA_PICTURES"];

/** For whatever a page shall do: a machine with much else to do takes its time. */
const TIMEOUT_MS = 120_000;

// No page of ours draws with WebGL, and drawing as if there were a graphics card takes twice the time.
chromium.setGraphicsMode = false;

/**
 * Left out of the package's arguments: those that make the browser forgive a page what a visitor's browser refuses, its one-process mode,
 * made for tiny machines, which dies with the first page that is closed, and the start of a whole program for each page.
 */
const UNWANTED_ARGUMENTS = new Set([
  "--single-process",
  "--no-zygote",
  "--allow-running-insecure-content",
  "--disable-site-isolation-trials",
  "--disable-web-security",
]);

export const openBrowser = async (): Promise<Browser> =>
  playwright.launch({
    timeout: TIMEOUT_MS,
    executablePath: process.env["CHROMIUM_PATH"] ?? (await unpackedBrowser()),
    args: [
      ...chromium.args.filter((argument) => !UNWANTED_ARGUMENTS.has(argument)),
      "--disable-background-networking",
      "--disable-component-update",
    ],
  });

/** Unpacked where all files look for it: whoever came meanwhile would start half of a program. */
async function unpackedBrowser(): Promise<string> {
  await once("unpacking the browser", () => chromium.executablePath());
  return chromium.executablePath();
}

export interface Look {
  scheme?: "light" | "dark";
  width?: number;
}

/** How each page is looked at. */
export const looks = sampleOf([
  { scheme: "light", width: 1200 },
  { scheme: "dark", width: 1200 },
  { scheme: "light", width: 360 },
  { scheme: "dark", width: 320 },
] as const);

/** What a page asked of others, and what it complained of. */
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
  return { page, foreign, complaints };
}

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

/** By how many pixels the page is wider than its window. */
export const overflowOf = async (page: Page): Promise<number> =>
  Number(await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"));
