const brands: Record<string, string> = {
  visa: "Visa",
  mastercard: "Mastercard",
  amex: "American Express",
  discover: "Discover",
  jcb: "JCB",
  diners: "Diners Club",
  unionpay: "UnionPay",
};

/** "Visa ends in 4242" */
export const cardName = ({ brand, last4 }: { brand: string; last4: string }): string =>
  `${brands[brand] ?? brand} ends in ${last4}`;
