import type { QuoteSale, SaleQuote } from "@stoa/contract";
import { findCommissionRate } from "../../accounts/people/accounts.ts";
import type { Context, Member } from "../../core/context.ts";
import { invalidRequest } from "../../core/errors.ts";
import { currencyExponent, toDecimal, toMinor } from "../../core/money/amount.ts";
import { taxRateOf } from "../../core/money/percent.ts";
import { splitSale } from "../../core/money/split.ts";

/** GET /sales/quote: the split of a sale that has not happened, by the rates and rounding of a purchase. */
export async function readSaleQuote(ctx: Context, caller: Member, query: QuoteSale): Promise<SaleQuote> {
  const { currency = ctx.config.currency } = query;
  const countries = [...new Set(query.countries.split(","))];
  if (!ctx.config.currencies.includes(currency))
    throw invalidRequest("currency", `must be one of ${ctx.config.currencies.join(", ")}`);
  const priceMinor = toMinor(query.price, currency);
  if (priceMinor === null) throw invalidRequest("price", `has more decimals than ${currency}`);
  const { feeBasisPoints } = ctx.config;
  const commissionBasisPoints =
    query.commissionBasisPoints ?? (await findCommissionRate(ctx.db, caller.userId));
  const amount = (minor: bigint) => toDecimal(minor, currency);
  const quoteCountry = async (country: string) => {
    const tax = await ctx.integrations.taxes.taxOf({ country, amountMinor: priceMinor, currency });
    const terms = { priceMinor, discountMinor: 0n, tax, feeBasisPoints };
    const direct = splitSale({ ...terms, commissionBasisPoints: 0 });
    const referred = splitSale({ ...terms, commissionBasisPoints });
    return {
      country,
      taxRate: taxRateOf({
        taxBasisPoints: tax.basisPoints,
        taxInclusive: tax.inclusive,
        taxCountry: tax.country,
      }),
      total: amount(direct.totalMinor),
      tax: amount(direct.taxMinor),
      fee: amount(direct.feeMinor),
      earnings: amount(direct.sellerMinor),
      referred: { commission: amount(referred.commissionMinor), earnings: amount(referred.sellerMinor) },
    };
  };
  return {
    price: amount(priceMinor),
    currency,
    decimals: currencyExponent(currency),
    feeBasisPoints,
    commissionBasisPoints,
    countries: await Promise.all(countries.map(quoteCountry)),
  };
}
