import { deferPackage } from "../../core/defer-package.ts";

const undici = deferPackage<typeof import("undici")>("undici");

declare module "../../core/context.ts" {
  interface Integrations {
    /** The pages of the test payment provider; null: there is none. */
    testPayments: RequestFakePage | null;
  }
}

/** The service serves the pages of the fake provider below this path. */
export const TEST_PAYMENTS_PATH = "/dev/payments";

const DEADLINE_MS = 10_000;
const HEADERS = [
  "content-type",
  "content-security-policy",
  "referrer-policy",
  "cache-control",
  "location",
] as const;

export interface FakePage {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** Requests a page of the fake provider; with a form, submits it. null: the provider does not respond. */
export type RequestFakePage = (path: string, form?: string) => Promise<FakePage | null>;

/** The provider listens only on loopback, which a user's browser may not reach, so the service requests its pages. */
export const fakePages =
  (origin: string): RequestFakePage =>
  async (path, form) => {
    const submit = form !== undefined && {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: form,
    };
    try {
      const response = await undici().fetch(new URL(path, origin), {
        ...submit,
        redirect: "manual",
        signal: AbortSignal.timeout(DEADLINE_MS),
      });
      const body = await response.text();
      return response.status < 500
        ? { status: response.status, headers: pick(response.headers), body }
        : null;
    } catch {
      return null;
    }
  };

const pick = (headers: { get(name: string): string | null }): Record<string, string> =>
  Object.fromEntries(
    HEADERS.flatMap((name) => {
      const value = headers.get(name);
      return value === null ? [] : [[name, value]];
    }),
  );
