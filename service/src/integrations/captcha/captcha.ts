import { z } from "zod";
import type { CaptchaSettings } from "../../core/config/config.ts";

/** The port for proofs that a person sent a request. */

declare module "../../core/context.ts" {
  interface Integrations {
    captcha: Captcha;
  }
}

export interface Captcha {
  /** How pages show it; null: no captcha is needed. */
  widget: Pick<CaptchaSettings, "provider" | "siteKey"> | null;
  /** Origins of the widget, for the policy of pages; empty: pages show none. */
  widgetOrigins: readonly string[];
  /** `unreachable`: the provider did not answer. */
  verify(token: string, ip: string): Promise<"passed" | "failed" | "unreachable">;
}

export const noCaptcha: Captcha = { widget: null, widgetOrigins: [], verify: async () => "passed" };

const widgetOrigins: Record<CaptchaSettings["provider"], readonly string[]> = {
  turnstile: ["https://challenges.cloudflare.com"],
  hcaptcha: ["https://hcaptcha.com", "https://*.hcaptcha.com"],
};

const Answer = z.object({ success: z.boolean() });

/** Turnstile and hCaptcha have the same `siteverify` protocol. */
export const createSiteVerifyCaptcha = (
  { provider, siteKey, secret, verifyUrl }: CaptchaSettings,
  timeoutMs: number,
): Captcha => ({
  widget: { provider, siteKey },
  widgetOrigins: widgetOrigins[provider],
  async verify(token, ip) {
    try {
      const response = await fetch(verifyUrl, {
        method: "POST",
        body: new URLSearchParams({ secret, response: token, remoteip: ip, sitekey: siteKey }),
        redirect: "error",
        signal: AbortSignal.timeout(timeoutMs),
      });
      const answer = Answer.safeParse(await response.json());
      if (!response.ok || !answer.success) return "unreachable";
      return answer.data.success ? "passed" : "failed";
    } catch {
      return "unreachable";
    }
  },
});
