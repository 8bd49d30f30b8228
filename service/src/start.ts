import { exitWithError } from "./backoffice/operator/operator-error.ts";
import { start } from "./backoffice/operator/start.ts";

// `stoa-server start` without the other commands, which import the whole service. It loads the service while PostgreSQL starts
// (docs/decisions/0077-service-loads-while-postgresql-starts.md).
start().catch(exitWithError);
