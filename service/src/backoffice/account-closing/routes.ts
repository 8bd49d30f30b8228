import { api } from "@stoa/contract";
import { repeatableRoute, route, uploadRoute } from "../../platform/http/route.ts";
import { removeAvatar, uploadAvatar } from "./avatar.ts";
import { closeAccount } from "./close-account.ts";
import { changeProfile, readAccount } from "./profile.ts";

export const accountRoutes = [
  route(api.account.get, (ctx, caller) => readAccount(ctx, caller)),
  route(api.account.update, (ctx, caller, { body }, facts) => changeProfile(ctx, caller, body, facts)),
  repeatableRoute(
    "The same picture is stored once.",
    uploadRoute(
      api.account.avatar.create,
      async () => {},
      (ctx, caller, { file }, { source }) => uploadAvatar(ctx, caller, file, source),
    ),
  ),
  route(api.account.avatar.delete, (ctx, caller, _input, { source }) => removeAvatar(ctx, caller, source)),
  route(api.account.close, (ctx, caller, { body }, { source }) => closeAccount(ctx, caller, body, source)),
];
