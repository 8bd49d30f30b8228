import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { endpoints } from "@stoa/contract";
import { createLog } from "@stoa/service/core/log.ts";
import type { Client } from "@stoa/service/test/market.ts";
import { BUILDS, sourceDigest } from "@stoa/service/web/builds/source-digest.ts";
import { WebBuilds } from "@stoa/service/web/builds/web-builds.ts";
import type { BrowserContext, Page } from "playwright-core";
import { openPage, overflowOf, takePicture, type Watched } from "./browser.ts";
import { once } from "./once.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Builds the web client if its sources changed since the last build. */
export const buildWebClient = (): Promise<void> =>
  once("building the web client", async () => {
    await new WebBuilds().ensureCurrent(createLog("warn"));
    // The service would go on with an older build, and the tests would test that one.
    if (!existsSync(join(BUILDS, sourceDigest()))) throw new Error("The web client was not built");
  });

/** A page of the web client and the requests that it sent to the API: `GET /products`. */
export interface WebPage extends Watched {
  calls: string[];
}

export async function openWebPage(context: BrowserContext, origin: string): Promise<WebPage> {
  const watched = await openPage(context, origin);
  const calls: string[] = [];
  watched.page.on("request", (request) => {
    const { pathname } = new URL(request.url());
    if (pathname.startsWith("/v1/")) calls.push(`${request.method()} ${pathname.slice(3)}`);
  });
  return { ...watched, calls };
}

/** Signs the browser in; `session` is a client by `market.createSession()`. */
export async function signIn(context: BrowserContext, origin: string, session: Client): Promise<void> {
  const { hostname } = new URL(origin);
  await context.addCookies([
    {
      name: "__Host-session",
      value: session.key,
      domain: hostname,
      path: "/",
      secure: true,
      httpOnly: true,
      sameSite: "Lax",
    },
  ]);
}

/** Operations of the contract, as patterns of calls. */
const operations = endpoints.map(
  ({ method, base, path }) =>
    new RegExp(`^${method} ${base === "/v1" ? "" : base}${path.replace(/\{\w+\}|:\w+/g, "[^/]+")}$`),
);

/** Asserts that nothing was wrong but the refusals that a test provokes, which browsers also log. */
export function mustHaveNoErrors({ complaints, foreign }: WebPage): void {
  const unexpected = complaints.filter((text) => !text.startsWith("Failed to load resource"));
  assert.deepEqual([...unexpected, ...foreign], []);
}

/** Asserts that the page fits its window, that axe finds no serious fault, and that nothing was wrong meanwhile. */
export async function mustBeSound(
  { page, foreign, complaints, calls }: WebPage,
  name: string,
  { isLive = false } = {},
): Promise<void> {
  // A page that reads a stream of events has always a request under way.
  if (!isLive) await page.waitForLoadState("networkidle");
  await takePicture(page, name);
  assert.ok((await overflowOf(page)) <= 0, `${name} is too wide`);
  assert.deepEqual(await findBarriers(page), [], name);
  assert.deepEqual([...foreign, ...complaints], [], name);
  const unknown = calls.filter((call) => !operations.some((operation) => operation.test(call)));
  assert.deepEqual(unknown, [], "calls that the contract does not have");
}

interface AxeResult {
  violations: { id: string; impact: string; nodes: { target: string[]; failureSummary: string }[] }[];
}

const TRANSITIONS_ENDED = `Promise.allSettled(
  document.getAnimations().filter((moving) => moving instanceof CSSTransition).map(({ finished }) => finished),
)`;

// Without `resultTypes`, axe writes a selector for each element that passes, which takes as long as the rules.
const FIND_VIOLATIONS = `axe.run(document, {
  runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
  resultTypes: ["violations"],
})`;

/** Serious and critical faults by WCAG 2.2 AA. */
async function findBarriers(page: Page): Promise<string[]> {
  // A menu that fades has low contrast.
  await page.evaluate(TRANSITIONS_ENDED);
  if (!(await page.evaluate("'axe' in window"))) await page.evaluate(AXE);
  const { violations } = (await page.evaluate(FIND_VIOLATIONS)) as AxeResult;
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id}: ${target} ${failureSummary}`),
    );
}
