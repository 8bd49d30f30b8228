import { readFileSync } from "node:fs";

const manifest = readFileSync(new URL("../../package.json", import.meta.url), "utf8");

/** The version of this service, from its package: shown in the API reference and by the MCP server. */
export const VERSION: string = JSON.parse(manifest).version;
