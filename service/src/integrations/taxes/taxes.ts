/** The port for tax calculation. */

declare module "../../core/context.ts" {
  interface Integrations {
    taxes: Taxes;
  }
}

export interface TaxedSale {
  /** The buyer's country, ISO 3166-1 alpha-2; null: unknown. */
  country: string | null;
  /** Minor units of the currency, after the discount. */
  amountMinor: bigint;
  currency: string;
}

export interface Tax {
  basisPoints: number;
  /** Whether the price contains the tax. */
  inclusive: boolean;
  /** The country of the tax, even if its rate is 0. */
  country: string | null;
}

export interface Taxes {
  taxOf(sale: TaxedSale): Promise<Tax>;
}

export const noTaxes: Taxes = {
  taxOf: async ({ country }) => ({ basisPoints: 0, inclusive: false, country }),
};

/** One rate for each country, in basis points; other countries have none. */
export const createFlatTaxes = (rates: ReadonlyMap<string, number>, inclusive: boolean): Taxes => ({
  taxOf: async ({ country }) => ({
    basisPoints: (country !== null && rates.get(country)) || 0,
    inclusive,
    country,
  }),
});
