/** Names of requirements at the payment provider, by their beginnings. */
const LABELS: readonly (readonly [beginning: string, label: string])[] = [
  ["external_account", "Bank account"],
  ["tos_acceptance", "Terms of the payment provider"],
  ["business_profile.url", "Website of your business"],
  ["business_profile", "Your business"],
  ["business_type", "Kind of your business"],
  ["individual.verification.additional_document", "A second identity document"],
  ["individual.verification", "Identity document"],
  ["individual.address", "Your address"],
  ["individual.dob", "Date of birth"],
  ["individual.email", "Email address"],
  ["individual.phone", "Phone number"],
  ["individual.id_number", "Tax or identity number"],
  ["individual.first_name", "First name"],
  ["individual.last_name", "Last name"],
  ["company.verification", "Document of your company"],
  ["company.tax_id", "Tax number of your company"],
  ["company.address", "Address of your company"],
];

/** A name that is not listed is shown as words. */
export const requirementLabel = (name: string): string =>
  LABELS.find(([beginning]) => name.startsWith(beginning))?.[1] ?? toWords(name);

function toWords(name: string): string {
  const words = name.replaceAll(/[._]+/g, " ").trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const REASONS: Record<string, string> = {
  "requirements.past_due": "The payment provider waits for what is overdue.",
  "requirements.pending_verification": "The payment provider checks what you sent.",
  under_review: "The payment provider reviews the account.",
  listed: "The payment provider checks the account against lists of sanctions.",
  "rejected.fraud": "The payment provider rejected the account because of fraud.",
  "rejected.terms_of_service": "The account breaks the terms of the payment provider.",
  "transfers.pending": "The payment provider checks the account before its first payout.",
};

/** Why payouts are refused, for the seller. */
export function disabledReason(
  { disabledReason: code }: { disabledReason: string | null },
  isSomethingDue: boolean,
): string {
  if (code !== null && REASONS[code]) return REASONS[code];
  if (isSomethingDue) return "Complete what the payment provider needs.";
  return code === null ? "Complete the account at the payment provider." : `The provider's reason: ${code}.`;
}
