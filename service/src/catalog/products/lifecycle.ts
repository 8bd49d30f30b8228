import { type ProductStatus, productStatuses } from "@stoa/contract";
import type { Context } from "../../core/context.ts";

export type MoveName =
  | "publish"
  | "submit"
  | "withdraw"
  | "approve"
  | "reject"
  | "unpublish"
  | "suspend"
  | "reinstate"
  | "delete";

export interface Move {
  /** Administrators may also do an author's moves. */
  by: "author" | "admin";
  from: readonly ProductStatus[];
  to: ProductStatus;
  auditAction: `product.${string}`;
  /** Requires the complete checklist. */
  complete?: true;
  /** "given" stores the moderator's reason, "kept" leaves it; every other move clears it. */
  moderationNote?: "given" | "kept";
  /** Published to the seller. `if` limits the end of a sale to products that were on sale until now, or ever. */
  event?:
    | "product.published"
    | { unpublished: "unpublished" | "suspended" | "deleted"; if: "on sale" | "ever" };
}

const NOT_OFFERED = ["draft", "rejected", "unpublished"] as const;

export const moves: Record<MoveName, Move> = {
  publish: {
    by: "author",
    from: NOT_OFFERED,
    to: "published",
    auditAction: "product.published",
    complete: true,
    event: "product.published",
  },
  // The move that replaces `publish` under moderation.
  submit: {
    by: "author",
    from: NOT_OFFERED,
    to: "pending_review",
    auditAction: "product.submitted",
    complete: true,
  },
  withdraw: { by: "author", from: ["pending_review"], to: "draft", auditAction: "product.withdrawn" },
  approve: {
    by: "admin",
    from: ["pending_review"],
    to: "published",
    auditAction: "product.approved",
    complete: true,
    event: "product.published",
  },
  reject: {
    by: "admin",
    from: ["pending_review"],
    to: "rejected",
    auditAction: "product.rejected",
    moderationNote: "given",
  },
  unpublish: {
    by: "author",
    from: ["published"],
    to: "unpublished",
    auditAction: "product.unpublished",
    event: { unpublished: "unpublished", if: "on sale" },
  },
  suspend: {
    by: "admin",
    from: ["published", "unpublished", "pending_review"],
    to: "suspended",
    auditAction: "product.suspended",
    moderationNote: "given",
    event: { unpublished: "suspended", if: "on sale" },
  },
  reinstate: { by: "admin", from: ["suspended"], to: "unpublished", auditAction: "product.reinstated" },
  delete: {
    by: "author",
    from: productStatuses.filter((status) => status !== "deleted"),
    to: "deleted",
    auditAction: "product.deleted",
    moderationNote: "kept",
    event: { unpublished: "deleted", if: "ever" },
  },
};

/** Whether moderators must approve this seller's products. */
export const isModerated = ({ config }: Context, { authorVerified }: { authorVerified: boolean }) =>
  config.moderation && !authorVerified;
