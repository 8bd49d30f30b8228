import { parseUrl } from "../../core/config/allowed-targets.ts";
import type { Context } from "../../core/context.ts";
import { invalidRequest } from "../../core/errors.ts";

/** The URL as the client will send it. A URL parser drops or rewrites parts of what was typed. */
export function normalizeEndpointUrl(ctx: Context, text: string, field = "url"): string {
  const character = /\p{Cc}/u.exec(text)?.[0];
  if (character) throw invalidRequest(field, `contains the control character ${codePointOf(character)}`);
  const url = parseUrl(text)?.href ?? text;
  const isPlain = url.startsWith("http:");
  const why =
    isPlain && ctx.config.environment === "production"
      ? "must be https"
      : ctx.integrations.findUrlProblem(url);
  if (why) throw invalidRequest(field, why);
  return url;
}

const codePointOf = (character: string) =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
