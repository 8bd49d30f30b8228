import { countryCodes } from "@stoa/contract/country-codes";
import { LOCALE } from "./format.ts";

const names = new Intl.DisplayNames(LOCALE, { type: "region" });

export const countryName = (code: string): string => names.of(code) ?? code;

/** By the names in the reader's language. */
export const countries = (): { code: string; name: string }[] =>
  countryCodes
    .map((code) => ({ code, name: countryName(code) }))
    .toSorted((one, other) => one.name.localeCompare(other.name, LOCALE));
