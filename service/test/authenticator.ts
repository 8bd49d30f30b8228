import assert from "node:assert/strict";
import { generateSync } from "otplib";
import type { Client, Market } from "./market.ts";

const STEP_MS = 30_000;

/** An authenticator app on the market's clock. */
export interface Authenticator {
  secret: string;
  backupCodes: string[];
  /** The current code. */
  code(): string;
  /** Moves the clock until the code differs from the last used one. */
  nextCode(): string;
  wrongCode(): string;
}

export const codeAt = (secret: string, ms: number): string =>
  generateSync({ secret, epoch: Math.floor(ms / 1000) });

export function authenticatorOf(market: Market, secret: string, backupCodes: string[] = []): Authenticator {
  const app: Authenticator = {
    secret,
    backupCodes,
    code: () => codeAt(secret, market.clock.now.getTime()),
    nextCode() {
      market.clock.forward(STEP_MS);
      return app.code();
    },
    wrongCode() {
      const now = market.clock.now.getTime();
      const near = [-STEP_MS, 0, STEP_MS].map((ms) => codeAt(secret, now + ms));
      return ["000000", "111111", "222222", "333333"].find((code) => !near.includes(code))!;
    },
  };
  return app;
}

/** Turns two-factor authentication on for the session's account. */
export async function enableTwoFactor(market: Market, session: Client): Promise<Authenticator> {
  const setUp = await session.post("/v1/account/two-factor");
  assert.equal(setUp.status, 201, setUp.text);
  const app = authenticatorOf(market, setUp.body.data.secret);
  const confirmed = await session.post("/v1/account/two-factor/confirm", { code: app.code() });
  assert.equal(confirmed.status, 200, confirmed.text);
  app.backupCodes.push(...confirmed.body.data.backupCodes);
  return app;
}
