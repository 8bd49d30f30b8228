/**
 * Money is a bigint of minor units, named `…Minor`, of at most 15 digits: a JSON number (a double) represents 15 decimal digits exactly.
 * 90071992547409.91 and 90071992547409.92 are the same double.
 */
export const MAX_MINOR = 999_999_999_999_999n;

/** Decimals by ISO 4217 list one, January 2026, without funds, metals and test codes. */
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

export const currencies: readonly string[] = [...exponents.keys()].sort();

export function isCurrency(code: string): boolean {
  return exponents.has(code);
}

/** JPY 0, USD 2, KWD 3. Throws for an unknown currency. */
export function currencyExponent(currency: string): number {
  const exponent = exponents.get(currency);
  if (exponent === undefined) throw new RangeError(`Unknown currency: ${currency}`);
  return exponent;
}

/** 19.99 USD is 1999. Returns null for more decimals than the currency has, a non-finite number, or more than `MAX_MINOR`. */
export function toMinor(amount: number, currency: string): bigint | null {
  const exponent = currencyExponent(currency);
  // Parses the shortest decimal of the double, which is what the client wrote; 19.99 * 100 is 1998.9999999999998. Exponents are out of
  // range in any currency.
  const [, sign, whole, fraction = ""] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(String(amount)) ?? [];
  if (whole === undefined || fraction.length > exponent) return null;
  const digits = BigInt(whole + fraction.padEnd(exponent, "0"));
  if (digits > MAX_MINOR) return null;
  return sign ? -digits : digits;
}

/** Some queries return amounts as safe integers of the driver; code that computes uses bigint. */
export type MinorUnits = bigint | number;

/** 1999 USD is 19.99. */
export function toDecimal(minor: MinorUnits, currency: string): number {
  return Number(decimalText(minor, currency));
}

/**
 * Past 15 digits, which only sums reach, it returns the nearest double. Dividing a safe integer by a power of ten rounds once, like
 * parsing, and is ten times as fast.
 */
export function toDecimalSum(minor: MinorUnits, currency: string): number {
  const exponent = currencyExponent(currency);
  return isSafe(minor) ? Number(minor) / 10 ** exponent : Number(insertDecimalPoint(minor, exponent));
}

const isSafe = (minor: MinorUnits) => minor <= Number.MAX_SAFE_INTEGER && minor >= Number.MIN_SAFE_INTEGER;

/** "19.99 USD", "500 JPY", always with all of the currency's decimals. */
export function formatMoney(minor: MinorUnits, currency: string): string {
  return `${decimalText(minor, currency)} ${currency}`;
}

/** "$19.99", "¥500": for people. Exact, since the number is formatted from its digits. */
export function formatMoneyWithSymbol(minor: MinorUnits, currency: string): string {
  const format = symbolFormats.get(currency) ?? createSymbolFormat(currency);
  return format.format(decimalText(minor, currency) as Intl.StringNumericLiteral);
}

/** By currency. A format takes longer to create than a statement to run. */
const symbolFormats = new Map<string, Intl.NumberFormat>();

function createSymbolFormat(currency: string): Intl.NumberFormat {
  const digits = currencyExponent(currency);
  const format = new Intl.NumberFormat("en-US", {
    style: "currency",
    currency,
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  symbolFormats.set(currency, format);
  return format;
}

/** The only rounding rule for money: floor(x + ½), towards +∞. Amounts are rounded while positive and negated afterwards. */
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
