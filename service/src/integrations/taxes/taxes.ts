/** The port for taxes: what the service asks of whoever knows how a sale is taxed. */

declare module "../../core/context.ts" {
  interface Integrations {
    taxes: Taxes;
  }
}

export interface TaxedSale {
  /** Where the buyer is, ISO 3166-1 alpha-2; null: they did not say. */
  country: string | null;
  /** Minor units of the currency, after the discount. */
  amountMinor: bigint;
  currency: string;
}

export interface Tax {
  basisPoints: number;
  /** Whether the price holds the tax already. */
  inclusive: boolean;
  /** Whose tax it is, or whose there would be. */
  country: string | null;
}

export interface Taxes {
  taxOf(sale: TaxedSale): Promise<Tax>;
}

/** Nothing is taxed. */
export const noTaxes: Taxes = {
  taxOf: async ({ country }) => ({ basisPoints: 0, inclusive: false, country }),
};

/** One rate for each country, in basis points; a country that is not named has none. */
export const createFlatTaxes = (rates: ReadonlyMap<string, number>, inclusive: boolean): Taxes => ({
  taxOf: async ({ country }) => ({
    basisPoints: (country !== null && rates.get(country)) || 0,
    inclusive,
    country,
  }),
});
