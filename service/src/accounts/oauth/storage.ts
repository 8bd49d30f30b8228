import type { AdapterFactory } from "oidc-provider";
import type { Context } from "../../core/context.ts";
import { clientStorage } from "./client-storage.ts";
import { flowStorage } from "./flow-storage.ts";
import { grantStorage } from "./grant-storage.ts";
import { tokenStorage } from "./token-storage.ts";

/** Where the provider keeps its things, by its own names for them. A kind that we do not offer has no place. */
export const storageOf =
  (ctx: Context): AdapterFactory =>
  (model) => {
    switch (model) {
      case "Client":
        return clientStorage(ctx);
      case "Grant":
        return grantStorage(ctx);
      case "Session":
      case "Interaction":
      case "PushedAuthorizationRequest":
        return flowStorage(ctx, model);
      case "AccessToken":
      case "ClientCredentials":
      case "RefreshToken":
      case "AuthorizationCode":
        return tokenStorage(ctx, model);
      default:
        throw new TypeError(`nothing is kept of ${model}`);
    }
  };
