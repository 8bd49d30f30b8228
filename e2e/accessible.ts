import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { overflowOf, takePicture } from "./browser.ts";

/**
 * Checks WCAG 2.2 AA in the rendered page: text contrast (1.4.3), names of controls (4.1.2), target size (2.5.8), order
 * of headings (1.3.1). Runs in the page.
 */
const FIND_BARRIERS = `(() => {
  const barriers = [];
  const isSeen = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const luminance = ([red, green, blue]) => {
    const part = (value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    return 0.2126 * part(red) + 0.7152 * part(green) + 0.0722 * part(blue);
  };
  const groundOf = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = rgb(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const isIdle = (element) => element.closest(":disabled, [aria-disabled=true]");

  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !isSeen(element) || isIdle(element) || element.closest("noscript")) continue;
    const [front, back] = [luminance(rgb(getComputedStyle(element).color)), luminance(groundOf(element))];
    const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    if (ratio < 4.5) barriers.push(\`"\${texts.currentNode.data.trim()}" has a contrast of \${ratio.toFixed(2)}\`);
  }

  for (const control of document.querySelectorAll("a[href], button, input, summary")) {
    if (!isSeen(control)) continue;
    const name = control.getAttribute("aria-label") ?? control.labels?.[0]?.textContent ?? control.textContent;
    if (!name.trim()) barriers.push(control.outerHTML + " has no name");
    const { width, height } = control.getBoundingClientRect();
    const isInLine = getComputedStyle(control).display === "inline";
    if (!isInLine && Math.min(width, height) < 20) barriers.push(\`\${name.trim()} is \${width} × \${height} px\`);
  }

  const levels = [...document.querySelectorAll("h1, h2, h3")].filter(isSeen).map(({ tagName }) => Number(tagName[1]));
  if (levels[0] !== 1 || levels.some((level, at) => level > (levels[at - 1] ?? 0) + 1))
    barriers.push("the headings are " + levels.join(", "));
  return barriers;
})()`;

async function mustBeAccessible(page: Page): Promise<void> {
  assert.deepEqual(await page.evaluate(FIND_BARRIERS), [], page.url());
}

/** Waits for the styles, then asserts that the page is accessible and not wider than its window. */
export async function mustBeFit(page: Page, name: string): Promise<void> {
  await page.waitForLoadState();
  await takePicture(page, name);
  assert.ok((await overflowOf(page)) <= 0, `${name} is too wide`);
  await mustBeAccessible(page);
}
