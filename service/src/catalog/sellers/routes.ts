import { api } from "@stoa/contract";
import { route } from "../../platform/http/route.ts";
import { readSeller } from "./seller.ts";

export const sellerRoutes = [
  route(api.sellers.get, (ctx, _caller, { params }) => readSeller(ctx, params.handle)),
];
