/**
 * Runs the fake payment provider in its own process. Reads the database connection as JSON from stdin, sends webhooks to the URL
 * in the first argument, and prints its own URL.
 */
import { json } from "node:stream/consumers";
import { openPostgresStore, startFakeProvider } from "@stoa/service/integrations/payments/fake-payments.ts";
import { type Connection, openPool } from "@stoa/service/platform/db/database.ts";

const pool = openPool((await json(process.stdin)) as Connection);
const provider = await startFakeProvider({ store: await openPostgresStore(pool), now: () => new Date() });
provider.sendWebhooksTo(process.argv[2]!);
console.log(provider.origin);
