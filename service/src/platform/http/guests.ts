import { v7 } from "uuid";
import type { Guest } from "../../core/context.ts";
import { createSigner } from "../../core/signature.ts";
import { GUEST_COOKIE } from "./authenticate.ts";
import type { Cookie } from "./route.ts";

declare module "../../core/context.ts" {
  interface Context {
    guests: Guests;
  }
}

const DAY_SECONDS = 86_400;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Visitors of the storefront without an account. The signed cookie is the only state. */
export interface Guests {
  /** For a browser with neither a session nor this cookie. */
  cookie(): Cookie;
  identify(cookie: string): Guest | null;
}

export function createGuests(secrets: Buffer[]): Guests {
  const signer = createSigner(secrets);
  return {
    cookie() {
      const id = v7();
      return { name: GUEST_COOKIE, value: `${id}.${signer.sign(id)}`, maxAgeSeconds: 30 * DAY_SECONDS };
    },
    identify(cookie) {
      const [id = "", signature = "", ...more] = cookie.split(".");
      if (!UUID.test(id) || more.length > 0) return null;
      return signer.verify(id, signature) ? { kind: "guest", guestId: id } : null;
    },
  };
}
