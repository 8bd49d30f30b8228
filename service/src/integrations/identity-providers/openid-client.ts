import { deferPackage } from "../../core/defer-package.ts";

/** The client of OAuth 2 and OpenID Connect, loaded by the first sign-in with a provider. */
export const openidClient = deferPackage<typeof import("openid-client")>("openid-client");
