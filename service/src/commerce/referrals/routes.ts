import { api } from "@stoa/contract";
import { route } from "../../platform/http/route.ts";
import { readReferral } from "./referrals.ts";

export const referralRoutes = [route(api.account.referral.get, (ctx, caller) => readReferral(ctx, caller))];
