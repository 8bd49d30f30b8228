import { relative, resolve } from "node:path";
import type { Config } from "../../core/config/config.ts";
import { isLoopbackHost, isLoopbackOrigin } from "../../core/loopback.ts";
import { testPageTokens } from "../../core/test-page-tokens.ts";

import type { PrintedKey } from "./printed-key.ts";

export interface StartInfo {
  config: Config;
  origin: string;
  /** null in production. */
  key: PrintedKey | null;
  seconds: string;
  stillLoading: boolean;
  /** Makes the user who opens it the first administrator; null when there is one. */
  adminLink: string | null;
}

/** Relative to the current folder where possible. */
function shortenPath(folder: string): string {
  const path = relative(".", folder) || ".";
  return path.startsWith("..") ? resolve(folder) : path;
}

/** Addresses and key in a box; below it the unframed link and command, to be copied. */
export function renderStartBox({ config, origin, key, seconds, stillLoading, adminLink }: StartInfo): string {
  const isForThisMachine = isLoopbackOrigin(origin) && isLoopbackHost(config.host);
  const token = isForThisMachine ? "" : `?token=${testPageTokens(config)[0]}`;
  const rows = [
    `Stoa is ready after ${seconds} s (${config.environment} environment)`,
    "",
    `API            ${origin}/v1`,
    `API reference  ${origin}/docs`,
    `Sign in        ${origin}/auth/sign-in`,
    ...(config.mail === "dev" ? [`Mailbox        ${origin}/dev/mail${token}`] : []),
    `Database       ${config.databaseUrl ? "DATABASE_URL" : `embedded, in ${shortenPath(config.dataDir)}`}`,
    ...(key
      ? [
          `API key        ${key.key}`,
          `               (until ${key.expiresAt.toISOString().slice(0, 16).replace("T", " ")} UTC)`,
        ]
      : []),
    ...(stillLoading
      ? ["", "Most products, sales and reviews of the demo shop are still being loaded in the background."]
      : []),
  ];
  const admin = adminLink
    ? [
        `\nTo become the administrator, open this link within 30 minutes and sign in. It works once:\n${adminLink}`,
      ]
    : [];
  const curl = key
    ? [`\ncurl -s '${origin}/v1/products?limit=3' -H 'Authorization: Bearer ${key.key}'\n`]
    : [];
  return [renderFrame(rows), ...admin, ...curl].join("\n");
}

function renderFrame(rows: string[]): string {
  const width = Math.max(...rows.map((row) => row.length));
  const line = (row: string) => `│ ${row.padEnd(width)} │`;
  const edge = "─".repeat(width + 2);
  return [`┌${edge}┐`, ...rows.map(line), `└${edge}┘`].join("\n");
}
