import { readFileSync } from "node:fs";

const manifest = readFileSync(new URL("../../package.json", import.meta.url), "utf8");

/** The version of this service: of its package, its reference and its MCP server. */
export const VERSION: string = JSON.parse(manifest).version;
