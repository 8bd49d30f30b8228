import { api } from "@stoa/contract";
import { route } from "../../platform/http/route.ts";
import { completeChallenge } from "./challenge.ts";
import { logIn } from "./login.ts";
import { logOut } from "./logout.ts";
import { sendMagicLink } from "./magic-link.ts";
import { listOwnProviders, unlinkOwnProvider } from "./own-providers.ts";
import { changePassword } from "./password.ts";
import { register } from "./registration.ts";
import { verifyLink } from "./verify-link.ts";

export const signInRoutes = [
  route(api.signIn.magicLink, (ctx, _, { body }, facts) => sendMagicLink(ctx, body.email, facts)),
  route(api.signIn.verify, (ctx, _, { body }, facts) => verifyLink(ctx, body, facts)),
  route(api.signIn.register, (ctx, _, { body }, facts) => register(ctx, body, facts)),
  route(api.signIn.logIn, (ctx, _, { body }, facts) => logIn(ctx, body, facts)),
  route(api.signIn.twoFactor, (ctx, _, { body }, facts) => completeChallenge(ctx, body, facts)),
  route(api.signIn.logOut, (ctx, _caller, _input, facts) => logOut(ctx, facts)),
  route(api.account.password.update, (ctx, caller, { body }, { source }) =>
    changePassword(ctx, caller, body, source),
  ),
  route(api.account.signInProviders.list, (ctx, caller) => listOwnProviders(ctx, caller)),
  route(api.account.signInProviders.unlink, (ctx, caller, { params }, { source }) =>
    unlinkOwnProvider(ctx, caller, params.provider, source),
  ),
];
