import assert from "node:assert/strict";
import { test } from "node:test";
import { notificationKinds } from "@stoa/contract";
import { kinds } from "../../accounts/notifications/kinds.ts";
import { MEMBER_PAGES } from "./member-pages.ts";

/** Public pages that notifications lead to. */
const PUBLIC_PAGES = ["/p/:slug"];
/** Pages that the client does not have yet. */
const PLANNED = ["/studio/products/:id"];
/** Of endpoints, and of the account, which has the secret for callbacks. */
const SUBJECT_IDS = ["whk_1", "usr_1"];

const addresses = [...PUBLIC_PAGES, ...PLANNED, ...Object.keys(MEMBER_PAGES)].map(
  (address) => new RegExp(`^${address.replace(/:\w+/g, "[^/]+")}$`),
);

/** Any text for any field, and never null. */
const data = new Proxy({}, { get: (_, field) => `${String(field)}_1` });

test("the URL of each notification: leads to a page of the client", () => {
  const urls = notificationKinds.flatMap((kind) => {
    const { url } = kinds[kind] as { url: (facts: { id: string; data: object }) => string };
    return SUBJECT_IDS.map((id) => url({ id, data }));
  });
  assert.deepEqual(
    urls.filter((url) => !addresses.some((address) => address.test(url))),
    [],
  );
});
