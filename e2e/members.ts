import type { Client, Market } from "@stoa/service/test/market.ts";
import type { Browser, BrowserContext } from "playwright-core";
import { type Look, openContext } from "./browser.ts";
import { openWebPage, signIn, type WebPage } from "./web.ts";

/** A name that is long, reads from right to left and has markup in it. */
export const HOSTILE = `<img src=x onerror=alert(1)> 👩‍👩‍👧 עברית ${"long".repeat(12)}`;

export interface Member {
  session: Client;
  context: BrowserContext;
}

/** A browser in which a new user is signed in, or the one of the session. */
export async function openMember(
  market: Market,
  browser: Browser,
  { look = {}, name = "Ada", session: given }: { look?: Look; name?: string; session?: Client } = {},
): Promise<Member> {
  const session = given ?? (await market.createSession((await market.createUser({ name })).userId));
  const context = await openContext(browser, look);
  await signIn(context, market.origin, session);
  return { session, context };
}

export async function openAt(context: BrowserContext, { origin }: Market, path: string): Promise<WebPage> {
  const watched = await openWebPage(context, origin);
  await watched.page.goto(origin + path);
  return watched;
}

const TABS = 2;

/**
 * Opens each address by a full load and runs `check` on its page. A tab loads one address after the other: the
 * process of a new tab takes more CPU time than a page.
 */
export async function visitEach<Visit extends readonly [path: string, ...rest: unknown[]]>(
  context: BrowserContext,
  { origin }: Market,
  visits: readonly Visit[],
  check: (watched: WebPage, visit: Visit) => Promise<void>,
): Promise<void> {
  const left = [...visits];
  const visitInTab = async () => {
    const watched = await openWebPage(context, origin);
    for (let visit = left.shift(); visit !== undefined; visit = left.shift()) {
      watched.calls.length = 0;
      await watched.page.goto(origin + visit[0]);
      await check(watched, visit);
    }
    await watched.page.close();
  };
  await Promise.all(Array.from({ length: Math.min(TABS, visits.length) }, visitInTab));
}
