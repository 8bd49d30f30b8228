import { isLoopbackHost } from "../loopback.ts";

const OPTIONS = ["requireTLS", "tls.rejectUnauthorized"];

export interface SmtpServer {
  host: string;
  port: number;
  /** TLS from the first byte. */
  secure: boolean;
  /** Requires STARTTLS: a server, or an attacker in between, that does not offer it gets no email and no password. */
  requireTLS: boolean;
  ignoreTLS: boolean;
  auth: { user: string; pass: string } | null;
  tls: { rejectUnauthorized: boolean };
}

/**
 * `smtps://user:password@host:port` uses TLS, `smtp://…` requires STARTTLS unless `?requireTLS=false`. On loopback smtp:// is plain.
 * Throws an Error with the problem.
 */
export function parseSmtpUrl(text: string): SmtpServer {
  const url = URL.parse(text);
  if (!url?.hostname || !/^smtps?:$/.test(url.protocol))
    throw new Error("is not smtp://host:port or smtps://host:port");
  for (const [name, value] of url.searchParams) {
    if (!OPTIONS.includes(name)) throw new Error(`takes ${OPTIONS.join(" and ")}, not ${name}`);
    if (value !== "true" && value !== "false") throw new Error(`${name} is true or false`);
  }
  const secure = url.protocol === "smtps:";
  const isLocal = isLoopbackHost(url.hostname);
  const user = decodeURIComponent(url.username);
  return {
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: Number(url.port) || (secure ? 465 : 587),
    secure,
    requireTLS: !secure && (url.searchParams.get("requireTLS") ?? String(!isLocal)) === "true",
    ignoreTLS: isLocal && !url.searchParams.has("requireTLS"),
    auth: user ? { user, pass: decodeURIComponent(url.password) } : null,
    tls: { rejectUnauthorized: url.searchParams.get("tls.rejectUnauthorized") !== "false" },
  };
}
