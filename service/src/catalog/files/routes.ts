import { api } from "@stoa/contract";
import { repeatableRoute, route, uploadRoute } from "../../platform/http/route.ts";
import { authorizeChange } from "../products/ownership.ts";
import { addFile, removeFile } from "./files.ts";
import { addImage, changeImage, removeImage } from "./images.ts";

export const fileRoutes = [
  repeatableRoute(
    "The same bytes under the same name change nothing.",
    uploadRoute(
      api.files.create,
      (ctx, caller, { productId }) => authorizeChange(ctx, caller, productId),
      (ctx, caller, { params, body, file }, { source }) =>
        addFile(ctx, caller, params.productId, file, { changelog: body.changelog, source }),
    ),
  ),
  route(api.files.delete, (ctx, caller, { params }, { source }) => removeFile(ctx, caller, params, source)),
  repeatableRoute(
    "The same picture is stored once.",
    uploadRoute(
      api.images.create,
      (ctx, caller, { productId }) => authorizeChange(ctx, caller, productId),
      (ctx, caller, { params, body, file }, { source }) =>
        addImage(ctx, caller, params.productId, file, { alt: body.alt, source }),
    ),
  ),
  route(api.images.update, (ctx, caller, { params, body }, { source }) =>
    changeImage(ctx, caller, params, body, source),
  ),
  route(api.images.delete, (ctx, caller, { params }, { source }) => removeImage(ctx, caller, params, source)),
];
