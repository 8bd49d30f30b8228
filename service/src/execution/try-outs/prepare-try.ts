import { contentPreview, MAX_TRY_OUT_CHARACTERS, MAX_TRY_OUT_CONTENT, type Try } from "@stoa/contract";
import { findVisibleProduct } from "../../catalog/products/detail.ts";
import { findRunnableVersion } from "../../catalog/products/product-lookup.ts";
import { type Caller, type Context, isMember, type Member } from "../../core/context.ts";
import { ApiError, fieldError, invalidRequest, ruleViolation } from "../../core/errors.ts";
import { firstOf } from "../../core/required.ts";
import { parseMessages, renderMessages } from "../../formats/prompt-template/template.ts";
import { checkVariables } from "../../formats/prompt-template/variables.ts";
import type { Message } from "../../integrations/ai-providers/ai-provider.ts";
import { findModel } from "../prompt-runs/prepare-run.ts";
import { findRunKey, type SealedKey } from "../provider-keys/provider-keys.ts";
import { type HiddenText, hideText } from "./leak-guard.ts";
import { findTryOut, type TryOutRow } from "./queries.ts";
import { keyIdOf } from "./try-outs.ts";

export interface PreparedTry {
  productId: string;
  version: string;
  tryOut: TryOutRow;
  key: SealedKey;
  model: string;
  messages: Message[];
  hidden: HiddenText;
}

/** Everybody tries what a stranger would buy, so that an author sees the same as the visitors. */
const STRANGER: Caller = { kind: "guest", guestId: "" };

/** The seller must not be recognizable by an error: the visitor can change nothing about it. */
export const unavailable = () =>
  new ApiError(
    "SERVICE_UNAVAILABLE",
    "This product cannot be tried at the moment. Try again later.",
    { source: "marketplace", reason: "try_out_unavailable" },
    60,
  );

export const turnedOff = () =>
  new ApiError("INVALID_STATE", "This product cannot be tried: its seller has not turned that on.", {
    current: "off",
  });

/** Checks a try and renders its prompt. Writes nothing. */
export async function prepareTry(ctx: Context, productId: string, { variables }: Try): Promise<PreparedTry> {
  const product = await findVisibleProduct(ctx, STRANGER, productId);
  const tryOut = await findTryOut(ctx.db, product.id);
  if (!tryOut || product.type !== "PROMPT") throw turnedOff();
  const released = await findReleasedVersion(ctx, product);
  if (released.content.length > MAX_TRY_OUT_CONTENT) throw turnedOff();
  mustBeShort(variables);
  const checked = checkVariables(released.variables, variables);
  if ("problems" in checked) throw fieldError("VALIDATION_ERROR", checked.problems);
  const messages = renderMessages(parseMessages(released.contentFormat, released.content), checked.values);
  const key = await findSellersKey(ctx, product.authorId, tryOut);
  const { title, description, preview, features, requirements, tags, samples, changelog } = product;
  const seen = [
    contentPreview(preview, product.content),
    title,
    description,
    changelog,
    JSON.stringify(samples),
  ];
  return {
    ...{ productId: product.id, version: released.version, tryOut, key, messages },
    model: findModel(product, key, tryOut.model ?? undefined),
    hidden: hideText(
      messages.map(({ content }) => content),
      [...seen, ...features, ...requirements, ...tags, ...checked.values.values()],
    ),
  };
}

/** Not a version that waits for moderators. */
async function findReleasedVersion(ctx: Context, product: Awaited<ReturnType<typeof findVisibleProduct>>) {
  if (product.released === null) return product;
  const which = { major: firstOf(product.released), pinned: undefined };
  return (await findRunnableVersion(ctx.db, product.id, which)) ?? product;
}

function mustBeShort(variables: Record<string, unknown>): void {
  const characters = Object.values(variables).reduce<number>(
    (sum, value) => sum + (typeof value === "string" ? value.length : 0),
    0,
  );
  if (characters > MAX_TRY_OUT_CHARACTERS)
    throw ruleViolation(
      "variables",
      `have ${characters} characters: a try may have ${MAX_TRY_OUT_CHARACTERS}. Shorten them, or buy the product`,
    );
}

async function findSellersKey(ctx: Context, authorId: string, tryOut: TryOutRow): Promise<SealedKey> {
  try {
    // Only the id of the seller counts for the search of a key.
    return await findRunKey(ctx, { userId: authorId } as Member, keyIdOf(tryOut));
  } catch (error) {
    if (error instanceof ApiError) throw unavailable();
    throw error;
  }
}

/** Guests need a solved captcha where the operator demands it. */
export async function mustBeHuman(
  { integrations: { captcha } }: Context,
  caller: Caller,
  token: string | undefined,
  ip: string,
): Promise<void> {
  if (captcha.widget === null || isMember(caller)) return;
  if (token === undefined)
    throw invalidRequest("captcha", "is needed: solve the captcha of tryOut.captcha, or sign in");
  const result = await captcha.verify(token, ip);
  if (result === "unreachable")
    throw new ApiError(
      "SERVICE_UNAVAILABLE",
      "The captcha cannot be checked now. Try again soon.",
      undefined,
      5,
    );
  if (result === "failed")
    throw invalidRequest("captcha", "is wrong, used or expired: solve the captcha again, or sign in");
}
