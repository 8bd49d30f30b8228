/**
 * Money is a whole number of minor units beside its currency: a bigint, named `…Minor`, of at most fifteen digits.
 * Fifteen, because that many decimal digits survive a JSON number (a double) whatever the exponent; a sixteenth
 * may not: 90071992547409.91 and 90071992547409.92 are the same double.
 */
export const MAX_MINOR = 999_999_999_999_999n;

/** Minor digits per currency: ISO 4217 list one, January 2026; funds, metals and test codes are left out. */
const currenciesByExponent: Record<number, string> = {
  0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF",
  2:
    "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CNY COP " +
    "CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS " +
    "INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN " +
    "MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE " +
    "SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD UYU UZS VED VES WST XCD XCG YER ZAR " +
    "ZMW ZWG",
  3: "BHD IQD JOD KWD LYD OMR TND",
};

const exponents = new Map(
  Object.entries(currenciesByExponent).flatMap(([exponent, codes]) =>
    codes.split(" ").map((code) => [code, Number(exponent)] as const),
  ),
);

/** Every currency that an amount can have, in alphabetical order. */
export const currencies: readonly string[] = [...exponents.keys()].sort();

/** Whether `code`, in upper case, is a known currency. */
export function isCurrency(code: string): boolean {
  return exponents.has(code);
}

/** The number of decimals of a currency: JPY 0, USD 2, KWD 3. Throws for an unknown one. */
export function currencyExponent(currency: string): number {
  const exponent = exponents.get(currency);
  if (exponent === undefined) throw new RangeError(`Unknown currency: ${currency}`);
  return exponent;
}

/**
 * The minor units of an amount as it came in JSON: 19.99 USD is 1999.
 * Null when it is no such amount: more decimals than the currency has, not finite, or past `MAX_MINOR`.
 */
export function toMinor(amount: number, currency: string): bigint | null {
  const exponent = currencyExponent(currency);
  // The shortest decimal that means this double is what the client wrote; 19.99 * 100 is 1998.9999999999998.
  // Very small and very large numbers print with an exponent, and are out of range in any currency.
  const [, sign, whole, fraction = ""] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(String(amount)) ?? [];
  if (whole === undefined || fraction.length > exponent) return null;
  const digits = BigInt(whole + fraction.padEnd(exponent, "0"));
  if (digits > MAX_MINOR) return null;
  return sign ? -digits : digits;
}

/**
 * An amount as it is told. Prices in lists, which are read and never reckoned with, are the driver's safe integers;
 * whatever is reckoned with is a bigint.
 */
type MinorUnits = bigint | number;

/** The JSON number of an amount, printed from the integer: 1999 USD is 19.99. */
export function toDecimal(minor: MinorUnits, currency: string): number {
  return Number(decimalText(minor, currency));
}

/**
 * The JSON number of a sum of amounts. Past fifteen digits, where no amount goes, it is the closest one that a double can be: years of
 * a whole market come that far in currencies of many zeros. A double divided by a power of ten is rounded once, as a decimal is that is
 * read, and so both are the same number; dividing is ten times as fast.
 */
export function toDecimalSum(minor: bigint, currency: string): number {
  const exponent = currencyExponent(currency);
  return isSafe(minor) ? Number(minor) / 10 ** exponent : Number(insertDecimalPoint(minor, exponent));
}

const isSafe = (minor: bigint) => minor <= Number.MAX_SAFE_INTEGER && minor >= Number.MIN_SAFE_INTEGER;

/** The amount for a person: "19.99 USD", "500 JPY", always with all of the currency's decimals. */
export function formatMoney(minor: MinorUnits, currency: string): string {
  return `${decimalText(minor, currency)} ${currency}`;
}

/**
 * The whole number next to an exact fraction; a half goes up. The one rounding rule for money.
 * Up means towards +∞, as in floor(x + ½); amounts are rounded while they are positive and negated afterwards.
 */
export function roundHalfUp(numerator: bigint, denominator: bigint): bigint {
  if (denominator <= 0n) throw new RangeError("The denominator must be positive");
  return floorDivide(2n * numerator + denominator, 2n * denominator);
}

function decimalText(minor: MinorUnits, currency: string): string {
  const exponent = currencyExponent(currency);
  if (
    minor > MAX_MINOR ||
    minor < -MAX_MINOR ||
    (typeof minor === "number" && !Number.isSafeInteger(minor))
  ) {
    throw new RangeError(`Not an amount in minor units: ${minor}`);
  }
  return insertDecimalPoint(minor, exponent);
}

function insertDecimalPoint(minor: MinorUnits, exponent: number): string {
  const sign = minor < 0 ? "-" : "";
  const digits = String(minor)
    .replace("-", "")
    .padStart(exponent + 1, "0");
  if (exponent === 0) return sign + digits;
  return `${sign}${digits.slice(0, -exponent)}.${digits.slice(-exponent)}`;
}

/** BigInt division rounds towards zero; this one rounds down. */
function floorDivide(numerator: bigint, denominator: bigint): bigint {
  const quotient = numerator / denominator;
  return numerator % denominator < 0n ? quotient - 1n : quotient;
}
