import { isCountry } from "@stoa/contract";
import { toBasisPoints } from "../money/percent.ts";
import type { SettingsReader } from "./settings-reader.ts";

const WHOLE_BASIS_POINTS = 10_000;

/** `DE=19,FR=5.5`: percentages by country. */
export function readTaxSettings(read: SettingsReader) {
  const rates = new Map<string, number>();
  for (const item of read.text("STOA_TAX_RATES")?.split(",") ?? []) {
    const problem = addRate(rates, item.trim());
    if (problem) read.problems.push(`STOA_TAX_RATES: "${item.trim()}" ${problem}`);
  }
  return { taxRates: rates, taxInclusive: read.choice("STOA_TAX_INCLUSIVE", ["on", "off"], "off") === "on" };
}

function addRate(rates: Map<string, number>, item: string): string | null {
  const [country = "", percent = "", ...more] = item.split("=");
  const basisPoints = toBasisPoints(percent);
  if (more.length > 0 || basisPoints === null || basisPoints > WHOLE_BASIS_POINTS)
    return "is no country and percentage of at most two decimals, such as DE=19 or FR=5.5";
  if (!isCountry(country)) return "does not begin with an ISO 3166-1 code such as DE";
  if (rates.has(country)) return `names ${country} a second time`;
  rates.set(country, basisPoints);
  return null;
}
