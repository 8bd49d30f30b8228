import { api } from "@stoa/contract";
import { route } from "../http/route.ts";
import { readUsage } from "./usage.ts";

export const planRoutes = [route(api.plans.usage, (ctx, caller) => readUsage(ctx, caller))];
