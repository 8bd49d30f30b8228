import type { ModeratedProduct, ProductCard } from "@stoa/sdk";
import type { Tone } from "../components/status-tag.tsx";

/** What the statuses of a product are called on pages. */
export const PRODUCT_STATUS_LABELS = {
  published: "On sale",
  draft: "Draft",
  pending_review: "In review",
  rejected: "Rejected",
  unpublished: "Off sale",
  suspended: "Suspended",
  deleted: "Deleted",
} as const;

const labels: Record<string, string> = PRODUCT_STATUS_LABELS;

const TONES: Record<string, Tone> = {
  published: "good",
  pending_review: "warning",
  rejected: "bad",
  suspended: "bad",
};

export const productStatus = ({ status }: Pick<ProductCard | ModeratedProduct, "status">): [Tone, string] => [
  TONES[status] ?? "neutral",
  labels[status] ?? status,
];
