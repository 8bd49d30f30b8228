import type { CreateDiscountCode, DiscountCode } from "@stoa/sdk";
import type { Tone } from "../components/status-tag.tsx";
import { formatMoney, formatPercent } from "./format.ts";

export const discountAmount = ({ percentOff, amountOff, currency }: DiscountCode): string =>
  percentOff === null ? formatMoney(amountOff ?? 0, currency ?? "USD") : formatPercent(percentOff / 100);

export const DISCOUNT_STATUS_LABELS = {
  active: "Works",
  scheduled: "Not yet",
  ended: "Ended",
  used_up: "Used up",
} as const;

/** The service filters by the same conditions in the same order. */
export function discountStatus(code: DiscountCode, now: number): [Tone, string] {
  const { startsAt, endsAt, maxRedemptions, redemptions } = code;
  if (endsAt !== null && Date.parse(endsAt) <= now) return ["neutral", DISCOUNT_STATUS_LABELS.ended];
  if (maxRedemptions !== null && redemptions >= maxRedemptions)
    return ["neutral", DISCOUNT_STATUS_LABELS.used_up];
  if (startsAt !== null && Date.parse(startsAt) > now) return ["warning", DISCOUNT_STATUS_LABELS.scheduled];
  return ["good", DISCOUNT_STATUS_LABELS.active];
}

/** The texts of the form. */
export interface DiscountFields {
  code: string;
  kind: "percent" | "amount";
  off: string;
  productId: string;
  startsAt: string;
  endsAt: string;
  maxRedemptions: string;
  maxPerBuyer: string;
}

export const NO_DISCOUNT: DiscountFields = {
  code: "",
  kind: "percent",
  off: "",
  productId: "",
  startsAt: "",
  endsAt: "",
  maxRedemptions: "",
  maxPerBuyer: "",
};

/** As an input for date and time reads it: local, without seconds. */
function toLocal(iso: string | null): string {
  if (iso === null) return "";
  const date = new Date(iso);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export const toFields = (code: DiscountCode): DiscountFields => ({
  code: code.code,
  kind: code.percentOff === null ? "amount" : "percent",
  off: String(code.percentOff ?? code.amountOff ?? ""),
  productId: code.productId ?? "",
  startsAt: toLocal(code.startsAt),
  endsAt: toLocal(code.endsAt),
  maxRedemptions: String(code.maxRedemptions ?? ""),
  maxPerBuyer: String(code.maxPerBuyer ?? ""),
});

const numberOrNull = (text: string): number | null =>
  text.trim() === "" ? null : Number(text.trim().replace(",", "."));
const timeOrNull = (local: string): string | null => (local === "" ? null : new Date(local).toISOString());

/** What the form sends. The service checks it, and names the field that is wrong. */
export function toRequest(fields: DiscountFields): CreateDiscountCode {
  const off = numberOrNull(fields.off) ?? 0;
  return {
    code: fields.code.trim(),
    ...(fields.kind === "percent" ? { percentOff: off } : { amountOff: off }),
    productId: fields.productId || null,
    startsAt: timeOrNull(fields.startsAt),
    endsAt: timeOrNull(fields.endsAt),
    maxRedemptions: numberOrNull(fields.maxRedemptions),
    maxPerBuyer: numberOrNull(fields.maxPerBuyer),
  };
}

/** The fields that the form changed: others must stay as they are, also to the second. */
export function changedRequest(before: DiscountFields, now: DiscountFields): Partial<CreateDiscountCode> {
  const was = Object.entries(toRequest(before));
  const is = Object.entries(toRequest(now));
  return Object.fromEntries(
    is.filter(([name, value]) => !was.some(([other, old]) => other === name && old === value)),
  ) as Partial<CreateDiscountCode>;
}
