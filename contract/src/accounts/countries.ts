import { z } from "zod";
import { countryCodes } from "./country-codes.ts";

const countries = new Set(countryCodes);

export const isCountry = (code: string): boolean => countries.has(code);

export const Country = z
  .string()
  .refine(isCountry, "must be an ISO 3166-1 code of two capital letters, such as DE")
  .describe("ISO 3166-1 alpha-2");
