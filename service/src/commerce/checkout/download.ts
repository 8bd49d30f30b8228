import { findAccount } from "../../accounts/people/accounts.ts";
import { findEntitlementByOrder, recordFirstUse } from "../../catalog/entitlements/entitlements.ts";
import { findRunnableVersion, mustNotBeWithheld } from "../../catalog/products/product-lookup.ts";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import { slugOf } from "../../core/slug.ts";
import type { OrderRow } from "../orders/queries.ts";

export interface Download {
  name: string;
  type: string;
  text: string;
}

type Version = NonNullable<Awaited<ReturnType<typeof findRunnableVersion>>>;

/** Checks account and entitlement at each download. */
export async function renderDownload(
  ctx: Context,
  order: OrderRow,
  { format, isHead }: { format: "md" | "json"; isHead: boolean },
): Promise<Download> {
  await mustHaveAccount(ctx, order.buyerId);
  const entitlement = await findEntitlementByOrder(ctx.db, order.id);
  if (entitlement?.status !== "active") {
    throw new ApiError("UNAUTHORIZED", "This purchase no longer gives access to the product.");
  }
  await mustNotBeWithheld(ctx.db, order.productId);
  const version = await findRunnableVersion(ctx.db, order.productId, {
    major: entitlement.major,
    pinned: undefined,
  });
  if (!version) throw new ApiError("PRODUCT_NOT_FOUND");
  if (!isHead) await recordFirstUse(ctx, order.buyerId, order.productId);
  const name = `${slugOf(order.productTitle)}-${version.version}.${format}`;
  return format === "json"
    ? { name, type: "application/json; charset=utf-8", text: toJson(order, version) }
    : { name, type: "text/markdown; charset=utf-8", text: toMarkdown(order, version) };
}

/** A link outlives the account. */
async function mustHaveAccount(ctx: Context, userId: string): Promise<void> {
  const buyer = await findAccount(ctx.db, userId);
  if (buyer && !buyer.bannedAt && !buyer.closedAt) return;
  throw new ApiError("UNAUTHORIZED", "The account that this link was made for has no access any more.");
}

const toJson = (order: OrderRow, version: Version) =>
  `${JSON.stringify(
    {
      productId: toId("prod", order.productId),
      orderId: toId("ord", order.id),
      title: order.productTitle,
      type: order.productType,
      version: version.version,
      contentFormat: version.contentFormat,
      variables: version.variables,
      content: version.content,
    },
    null,
    2,
  )}\n`;

/** Longer than any run of backticks inside, so that the content cannot close the fence. */
function fenced(text: string): string {
  const longest = [...text.matchAll(/`+/g)].reduce((most, [run]) => Math.max(most, run.length), 2);
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}

function toMarkdown(order: OrderRow, version: Version): string {
  const inputs = version.variables.map(
    ({ name, description, required, default: value }) =>
      `- \`${name}\`${required ? "" : " (optional)"}${description ? `: ${description}` : ""}${value === undefined ? "" : ` Default: \`${value}\``}`,
  );
  return [
    "---",
    // JSON strings are valid YAML strings, so any title is safe.
    `title: ${JSON.stringify(order.productTitle)}`,
    `version: ${JSON.stringify(version.version)}`,
    `author: ${JSON.stringify(order.sellerName)}`,
    `product: ${toId("prod", order.productId)}`,
    `order: ${toId("ord", order.id)}`,
    "---",
    "",
    ...(inputs.length > 0 ? ["## Variables", "", ...inputs, ""] : []),
    "## Prompt",
    "",
    fenced(version.content),
    "",
  ].join("\n");
}
