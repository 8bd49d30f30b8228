/**
 * The fake payment provider in a process of its own, with its tables in the database whose connection stdin has as JSON.
 * Sends its webhooks to the URL of the first argument, and prints its own.
 */
import { json } from "node:stream/consumers";
import { openPostgresStore, startFakeProvider } from "@stoa/service/integrations/payments/fake-payments.ts";
import { type Connection, openPool } from "@stoa/service/platform/db/database.ts";

const pool = openPool((await json(process.stdin)) as Connection);
const provider = await startFakeProvider({ store: await openPostgresStore(pool), now: () => new Date() });
provider.sendWebhooksTo(process.argv[2]!);
console.log(provider.origin);
