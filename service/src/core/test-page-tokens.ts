import { hkdfSync } from "node:crypto";
import type { Config } from "./config/config.ts";

/** The tokens for /dev/mail, /dev/hooks and /dev/payments from another machine; the start prints the first one. */
export const testPageTokens = ({ sessionKeys }: Pick<Config, "sessionKeys">): string[] =>
  sessionKeys.map((key) =>
    Buffer.from(hkdfSync("sha256", key, "", "stoa test pages", 32)).toString("base64url"),
  );
