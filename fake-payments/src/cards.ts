import { z } from "zod";
import { cardPage, notFoundPage } from "./html-pages.ts";
import {
  type Call,
  type Endpoint,
  jsonReply,
  page,
  type Reply,
  readJson,
  readText,
  redirect,
  refusal,
} from "./http.ts";
import { sharedMethods } from "./methods.ts";

/** A path of the marketplace. With two slashes in front it would be the address of another site. */
const PATH = /^\/(?!\/)[\w\-.~%/?=&,:+*]*$/;
const CardPageRequest = z.strictObject({ returnTo: z.string().max(500).regex(PATH) });

/** The page on which a buyer enters a card. Its id is the path to which it redirects, so that nothing needs to be stored. */
export const cardEndpoints: Endpoint[] = [
  ["POST", /^\/v1\/card-pages$/, makeCardPage],
  ["GET", /^\/cards\/([^/]+)$/, showCardPage],
  ["POST", /^\/cards\/([^/]+)$/, enterCard],
];

async function makeCardPage({ provider, request }: Call): Promise<Reply> {
  const asked = await readJson(request, CardPageRequest);
  if (!asked) return refusal(400, "invalid_request");
  const id = Buffer.from(asked.returnTo).toString("base64url");
  return jsonReply(200, { url: provider.pageUrl(`/cards/${id}`).href });
}

/** null: no page of ours has this id. */
function returnToOf(id: string): string | null {
  const path = Buffer.from(id, "base64url").toString();
  return PATH.test(path) ? path : null;
}

async function showCardPage({ id }: Call): Promise<Reply> {
  return returnToOf(id) === null ? page(404, notFoundPage()) : page(200, cardPage(sharedMethods));
}

async function enterCard({ id, request }: Call): Promise<Reply> {
  const returnTo = returnToOf(id);
  const card = new URLSearchParams(await readText(request)).get("card");
  const method = sharedMethods.find((one) => one.id === card);
  if (returnTo === null || !method) return page(404, notFoundPage());
  return redirect(`${returnTo}${returnTo.includes("?") ? "&" : "?"}card=${method.id}`);
}
