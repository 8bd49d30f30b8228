import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createDraft } from "@stoa/service/test/factories.ts";
import { type Market, openMarket } from "@stoa/service/test/market.ts";
import fc from "fast-check";
import type { Browser, Locator, Page } from "playwright-core";
import { click, openBrowser } from "./browser.ts";
import { INTERLEAVINGS } from "./interleavings.ts";
import { openAt, openMember } from "./members.ts";
import { field, readProduct, save, waitUntilSaved } from "./product-editor.ts";
import { buildWebClient, mustBeSound, mustHaveNoErrors, type WebPage } from "./web.ts";

let market: Market;
let browser: Browser;
before(async () => {
  await buildWebClient();
  market = await openMarket();
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await market.close();
});

/** Chooses a side for every field of the conflict, and returns the texts that were given up. */
async function decide(page: Page, side: "mine" | "theirs"): Promise<string[]> {
  const dialog = page.getByRole("dialog", { name: "Changed here and elsewhere" });
  const other = side === "mine" ? "theirs" : "mine";
  // What is struck out stood there before both.
  const dropped = await dialog.locator(`[data-side=${other}] ins`).allInnerTexts();
  await click(page, side === "mine" ? "All yours" : "All theirs");
  await click(page, "Keep what is chosen");
  return dropped;
}

test("two tabs change the same and other fields: the person sees three texts and chooses for each field", async () => {
  const { session, context } = await openMember(market, browser);
  const id = await createDraft(session);
  const first = await openAt(context, market, `/studio/products/${id}?tab=details`);
  const second = await openAt(context, market, `/studio/products/${id}?tab=details`);
  await field(first.page, "Title").fill("Haiku about rain");
  await field(first.page, "License").fill("MIT");
  await save(first.page);
  await waitUntilSaved(first.page);
  await field(second.page, "Title").fill("Haiku about snow");
  await field(second.page, "Public preview").fill("A haiku");
  await save(second.page);
  const dialog = second.page.getByRole("dialog");
  await dialog.getByText("Changed here and elsewhere").waitFor();
  mustHaveNoErrors(second);
  second.complaints.length = 0;
  await mustBeSound(second, "editor conflict");
  for (const [side, word] of [
    ["mine", "snow"],
    ["theirs", "rain"],
    ["base", "anything"],
  ])
    await dialog.locator(`[data-side=${side}]`, { hasText: word! }).waitFor();
  assert.equal(
    (await readProduct(session, id)).title,
    "Haiku about rain",
    "nothing is stored before the choice",
  );
  assert.ok(await dialog.getByRole("button", { name: "Keep what is chosen" }).isDisabled());
  await dialog.getByRole("radio", { name: /^Yours/ }).check();
  await click(second.page, "Keep what is chosen");
  await waitUntilSaved(second.page);
  const { title, license, contentPreview } = await readProduct(session, id);
  assert.deepEqual([title, license, contentPreview], ["Haiku about snow", "MIT", "A haiku"]);
  // The first tab takes over what it had not changed.
  await field(first.page, "Description").fill("Seventeen syllables.");
  await save(first.page);
  await first.page.getByRole("heading", { name: "Haiku about snow" }).waitFor();
  await waitUntilSaved(first.page);
  assert.equal((await readProduct(session, id)).description, "Seventeen syllables.");
  for (const watched of [first, second]) mustHaveNoErrors(watched);
  await context.close();
});

/** Types at the end, at once: between reading and writing, the text could change. */
const append = (input: Locator, text: string) =>
  input.evaluate((element, more) => {
    const control = element as unknown as { value: string; dispatchEvent: (event: Event) => void };
    const { set } = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(control), "value") ?? {};
    set?.call(control, control.value + more);
    control.dispatchEvent(new Event("input", { bubbles: true }));
  }, text);

const FIELDS = ["Title", "Description", "License", "Public preview"] as const;
const KEYS = ["title", "description", "license", "contentPreview"] as const;
/** The shortest field takes 100 characters, and a case adds at most 30 to one. */
const MAX_TEXT = 60;

interface Step {
  tab: 0 | 1;
  action: { field: number } | "save";
}

test("two tabs on one product, random interleavings: no edit is lost without a choice", async () => {
  const { session, context } = await openMember(market, browser);
  const id = await createDraft(session, { title: "t0", description: "d0", license: "l0", preview: "p0" });
  const tabs = await Promise.all(
    [0, 1].map(() => openAt(context, market, `/studio/products/${id}?tab=details`)),
  );
  const tokens = new Set<string>();
  const dropped: string[] = [];
  const settle = async ({ page }: WebPage, side: "mine" | "theirs") => {
    for (;;) {
      await save(page);
      const saved = page.getByRole("status").filter({ hasText: /^Saved/ });
      const conflict = page.getByRole("dialog", { name: "Changed here and elsewhere" });
      await saved.or(conflict).first().waitFor();
      if ((await conflict.count()) === 0) return;
      dropped.push(...(await decide(page, side)));
    }
  };
  let count = 0;
  const step = fc.record<Step>({
    tab: fc.constantFrom<0 | 1>(0, 1),
    action: fc.oneof(
      { weight: 3, arbitrary: fc.record({ field: fc.nat(FIELDS.length - 1) }) },
      { weight: 1, arbitrary: fc.constant("save" as const) },
    ),
  });
  const cases = fc.record({
    steps: fc.array(step, { minLength: 2, maxLength: 4 }),
    side: fc.constantFrom<"mine" | "theirs">("mine", "theirs"),
  });
  const property = fc.asyncProperty(cases, async ({ steps, side }) => {
    for (const { tab, action } of steps) {
      const { page } = tabs[tab]!;
      if (action === "save") {
        await settle(tabs[tab]!, side);
        continue;
      }
      // A conflict may open by itself, since what is typed is saved after a moment.
      const open = page.getByRole("dialog", { name: "Changed here and elsewhere" });
      if ((await open.count()) > 0) dropped.push(...(await decide(page, side)));
      const token = `w${(count++).toString(36)}`;
      tokens.add(token);
      await append(field(page, FIELDS[action.field]!), ` ${token}`);
    }
    for (const tab of [0, 1, 0] as const) await settle(tabs[tab]!, side);
    const product = await readProduct(session, id);
    const kept = KEYS.map((key) => product[key]).join(" ");
    const known = new Set(`${kept} ${dropped.join(" ")}`.split(/\s+/));
    assert.deepEqual(
      [...tokens].filter((token) => !known.has(token)),
      [],
    );
    if (KEYS.every((key) => product[key].length <= MAX_TEXT)) return;
    const short = { title: "t", description: "d", license: "l", preview: "p" };
    assert.equal((await session.patch(`/v1/products/${id}`, short)).status, 200);
    tokens.clear();
  });
  await fc.assert(property, { numRuns: INTERLEAVINGS, endOnFailure: true });
  for (const watched of tabs) mustHaveNoErrors(watched);
  await context.close();
});
