/** `USD 19.99`, with the decimals of the currency. */
export const money = (amount: number, currency: string): string =>
  new Intl.NumberFormat("en", { style: "currency", currency, currencyDisplay: "code" })
    .format(amount)
    .replace("\u00a0", " ");

export const amountOf = ({ amount, currency }: { amount: number; currency: string }): string =>
  money(amount, currency);

/** `2026-11-23 14:05`, in the time zone of this machine. */
export function time(iso: string | null): string {
  if (iso === null) return "";
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return iso;
  const two = (number: number) => String(number).padStart(2, "0");
  const date = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${date} ${two(at.getHours())}:${two(at.getMinutes())}`;
}

export const percent = (share: number | null): string =>
  share === null ? "" : `${(share * 100).toFixed(1)} %`;
