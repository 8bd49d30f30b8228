import { test } from "node:test";
import { assertInOrder, listenThroughDisconnects } from "./listen-through-disconnects.ts";

test("stoa listen through 100 cuts, a restart of the service and kill -9: all 10,000 events, in order", async () => {
  assertInOrder(await listenThroughDisconnects({ events: 10_000, disconnects: 102 }));
});
