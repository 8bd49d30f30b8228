import type { AdapterFactory } from "oidc-provider";
import type { Context } from "../../core/context.ts";
import { clientAdapter } from "./client-adapter.ts";
import { flowAdapter } from "./flow-adapter.ts";
import { grantAdapter } from "./grant-adapter.ts";
import { tokenAdapter } from "./token-adapter.ts";

/** Storage of oidc-provider, by its own names of the models. */
export const createAdapterFactory =
  (ctx: Context): AdapterFactory =>
  (model) => {
    switch (model) {
      case "Client":
        return clientAdapter(ctx);
      case "Grant":
        return grantAdapter(ctx);
      case "Session":
      case "Interaction":
      case "PushedAuthorizationRequest":
        return flowAdapter(ctx, model);
      case "AccessToken":
      case "ClientCredentials":
      case "RefreshToken":
      case "AuthorizationCode":
        return tokenAdapter(ctx, model);
      default:
        throw new TypeError(`nothing is kept of ${model}`);
    }
  };
