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
  /** Administrators may do what an author may. */
  by: "author" | "admin";
  from: readonly ProductStatus[];
  to: ProductStatus;
  /** What the audit log calls it. */
  auditAction: `product.${string}`;
  /** Only what has everything that a buyer needs goes this way. */
  complete?: true;
  /** Moderators say why; a deletion keeps what they said, every other move forgets it. */
  moderationNote?: "given" | "kept";
  /** What the seller's programs are told: of the end of a sale, if the product was on sale till now, or ever. */
  event?:
    | "product.published"
    | { unpublished: "unpublished" | "suspended" | "deleted"; if: "on sale" | "ever" };
}

const NOT_OFFERED = ["draft", "rejected", "unpublished"] as const;

/** The life of a product: every move that there is. */
export const moves: Record<MoveName, Move> = {
  publish: {
    by: "author",
    from: NOT_OFFERED,
    to: "published",
    auditAction: "product.published",
    complete: true,
    event: "product.published",
  },
  // What publishing is where moderators look first.
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

/** Whether moderators look at what this seller offers before buyers do. */
export const isModerated = ({ config }: Context, { authorVerified }: { authorVerified: boolean }) =>
  config.moderation && !authorVerified;
