import assert from "node:assert/strict";
import type { Client } from "@stoa/service/test/market.ts";
import type { Page } from "playwright-core";
import type { WebPage } from "./web.ts";

export const field = (page: Page, label: string) => page.getByLabel(label, { exact: true });
export const save = (page: Page) => page.keyboard.press("Control+s");
export const waitUntilSaved = (page: Page) =>
  page
    .getByRole("status")
    .filter({ hasText: /^(Saved|Kept)/ })
    .waitFor();
export const readProduct = async (client: Client, id: string) =>
  (await client.get(`/v1/products/${id}`)).body.data;

/** Asserts that nothing was wrong but the refusals that a test provokes, which browsers also log. */
export function mustHaveNoErrors({ complaints, foreign }: WebPage): void {
  const unexpected = complaints.filter((text) => !text.startsWith("Failed to load resource"));
  assert.deepEqual([...unexpected, ...foreign], []);
}
