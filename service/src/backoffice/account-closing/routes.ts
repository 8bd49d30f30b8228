import { api } from "@stoa/contract";
import { route } from "../../platform/http/route.ts";
import { closeAccount } from "./close-account.ts";
import { changeProfile, readAccount } from "./profile.ts";

export const accountRoutes = [
  route(api.account.get, (ctx, caller) => readAccount(ctx, caller)),
  route(api.account.update, (ctx, caller, { body }, facts) => changeProfile(ctx, caller, body, facts)),
  route(api.account.close, (ctx, caller, { body }, { source }) => closeAccount(ctx, caller, body, source)),
];
