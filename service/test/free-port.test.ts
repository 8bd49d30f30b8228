import assert from "node:assert/strict";
import { test } from "node:test";
import { freePort } from "./free-port.ts";

test("freePort: another search from the same port gets another one, although no server listens yet", async () => {
  const copy: typeof import("./free-port.ts") = await import(`${import.meta.resolve("./free-port.ts")}?copy`);
  assert.notEqual(await copy.freePort(), await freePort());
});
