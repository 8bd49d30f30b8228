import { api } from "@stoa/contract";
import { repeatableRoute, route } from "../../platform/http/route.ts";
import {
  confirmTwoFactor,
  disableTwoFactor,
  readTwoFactor,
  renewBackupCodes,
  setUpTwoFactor,
} from "./two-factor.ts";

const { twoFactor } = api;

export const twoFactorRoutes = [
  route(twoFactor.get, (ctx, caller) => readTwoFactor(ctx, caller)),
  repeatableRoute(
    "A secret has no effect until you confirm it with a code; a new one replaces it.",
    route(twoFactor.setUp, (ctx, caller) => setUpTwoFactor(ctx, caller)),
  ),
  route(twoFactor.confirm, (ctx, caller, { body }, { source }) =>
    confirmTwoFactor(ctx, caller, body.code, source),
  ),
  route(twoFactor.renewBackupCodes, (ctx, caller, { body }, { source }) =>
    renewBackupCodes(ctx, caller, body.code, source),
  ),
  route(twoFactor.disable, (ctx, caller, { body }, { source }) =>
    disableTwoFactor(ctx, caller, body, source),
  ),
];
