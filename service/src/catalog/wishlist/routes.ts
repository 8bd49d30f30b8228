import { api } from "@stoa/contract";
import { route } from "../../platform/http/route.ts";
import { addToWishlist, listWishlist, removeFromWishlist } from "./wishlist.ts";

export const wishlistRoutes = [
  route(api.wishlist.list, (ctx, caller, { query }) => listWishlist(ctx, caller, query)),
  route(api.wishlist.add, (ctx, caller, { params }) => addToWishlist(ctx, caller, params.productId)),
  route(api.wishlist.remove, (ctx, caller, { params }) => removeFromWishlist(ctx, caller, params.productId)),
];
