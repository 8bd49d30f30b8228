import { parseUrl } from "../../core/config/allowed-targets.ts";
import type { Context } from "../../core/context.ts";
import { invalidRequest } from "../../core/errors.ts";

/** The URL as it will be requested: a URL parser drops or rewrites parts of the input. */
export function normalizeEndpointUrl(ctx: Context, text: string, field = "url"): string {
  const character = /\p{Cc}/u.exec(text)?.[0];
  if (character) throw invalidRequest(field, `contains the control character ${codePointOf(character)}`);
  const url = parseUrl(text)?.href ?? text;
  const isPlain = url.startsWith("http:");
  const problem =
    isPlain && ctx.config.environment === "production"
      ? "must be https"
      : ctx.integrations.findUrlProblem(url);
  if (problem) throw invalidRequest(field, problem);
  return url;
}

const codePointOf = (character: string) =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
