import type { MasterKey } from "../vault.ts";
import { splitDatabaseUrl } from "./database-hosts.ts";

export type EnvironmentVariables = Record<string, string | undefined>;

export class SettingsReader {
  readonly problems: string[] = [];
  readonly variables: EnvironmentVariables;

  constructor(variables: EnvironmentVariables) {
    this.variables = variables;
  }

  text(name: string): string | null {
    return this.variables[name]?.trim() || null;
  }

  choice<T extends string>(name: string, allowed: readonly T[], otherwise: T): T {
    const value = this.text(name) ?? otherwise;
    if (!(allowed as readonly string[]).includes(value)) {
      this.problems.push(`${name} is "${value}"; it takes ${allowed.join(", ")}`);
    }
    return value as T;
  }

  integer(name: string, min: number, max: number, otherwise: number): number {
    const value = this.text(name);
    if (value === null) return otherwise;
    const number = /^\d+$/.test(value) ? Number(value) : Number.NaN;
    if (number >= min && number <= max) return number;
    this.problems.push(`${name} is "${value}"; it takes a whole number from ${min} to ${max}`);
    return otherwise;
  }

  url(name: string, protocols: string[]): string | null {
    const value = this.text(name);
    if (value === null) return null;
    if (!protocols.includes(URL.parse(value)?.protocol ?? "")) {
      this.problems.push(`${name} is not a URL that begins with ${protocols.join("// or ")}//`);
    }
    return value.replace(/\/+$/, "");
  }

  /** libpq's form, which may name several servers. */
  databaseUrl(name: string): string | null {
    const value = this.text(name);
    try {
      if (value !== null) splitDatabaseUrl(value);
    } catch (error) {
      this.problems.push(`${name} ${(error as Error).message}`);
    }
    return value;
  }

  /** Normalized as in the browsers' Origin header, with which it is compared. */
  origin(name: string): string | null {
    const value = this.url(name, ["http:", "https:"]);
    const url = value === null ? null : URL.parse(value);
    if (!url) return null;
    if (url.href !== `${url.origin}/`)
      this.problems.push(`${name} is more than scheme, host and port, such as https://stoa.example`);
    return url.origin;
  }

  list<T extends string>(name: string, allowed: (item: string) => boolean, otherwise: T[]): T[] {
    const items = this.text(name)
      ?.split(",")
      .map((item) => item.trim());
    for (const item of items ?? []) if (!allowed(item)) this.problems.push(`${name}: "${item}" is not known`);
    return (items as T[] | undefined) ?? otherwise;
  }

  /** Comma-separated `id:base64` of 32 bytes each. */
  keys(name: string): MasterKey[] {
    const items = this.text(name)?.split(",") ?? [];
    const keys = items.map((item, index) => {
      const [id = "", base64 = ""] = item.trim().split(":");
      const bytes = Buffer.from(base64, "base64");
      if (!/^[A-Za-z0-9_-]{1,40}$/.test(id) || bytes.length !== 32) {
        this.problems.push(
          `${name}: entry ${index + 1} is not id:base64 of 32 bytes (openssl rand -base64 32)`,
        );
      }
      return { id, bytes };
    });
    if (new Set(keys.map(({ id }) => id)).size < keys.length)
      this.problems.push(`${name} names two keys alike: what one of them sealed could not be opened`);
    return keys;
  }
}
