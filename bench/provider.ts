/** A model provider that answers at once, in a process of its own. Prints its base URL. */
import { startProviderServer } from "@stoa/service/test/provider-server.ts";

const { url, requests } = await startProviderServer();
setInterval(() => requests.splice(0), 1_000);
console.log(url);
