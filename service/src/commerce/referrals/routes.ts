import { api } from "@stoa/contract";
import { route } from "../../platform/http/route.ts";
import { readReferral } from "./referrals.ts";

export const referralRoutes = [route(api.referrals.get, (ctx, caller) => readReferral(ctx, caller))];
