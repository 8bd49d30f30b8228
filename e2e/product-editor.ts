import type { Client } from "@stoa/service/test/market.ts";
import type { Page } from "playwright-core";

export const field = (page: Page, label: string) => page.getByLabel(label, { exact: true });
export const save = (page: Page) => page.keyboard.press("Control+s");
export const waitUntilSaved = (page: Page) =>
  page
    .getByRole("status")
    .filter({ hasText: /^(Saved|Kept)/ })
    .waitFor();
export const readProduct = async (client: Client, id: string) =>
  (await client.get(`/v1/products/${id}`)).body.data;
