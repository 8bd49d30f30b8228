import { z } from "zod";

/** RFC 5321, 4.5.3.1.3: a path has 256 octets, its angle brackets among them. */
const MAX_ADDRESS = 254;
const ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
const LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
const ADDRESS = new RegExp(`^(?=.{1,64}@)${ATOM}(?:\\.${ATOM})*@(?:${LABEL}\\.)+(?!\\d+$)${LABEL}$`);

/**
 * Validates email addresses more strictly than the RFCs: only characters that every mail server reads alike. Quotes,
 * comments, lists, line breaks and non-ASCII characters (a full-width `＠` becomes `@` under NFKC) have sent sign-in
 * links to strangers elsewhere. Lower case, so that an account has one spelling.
 */
export const Address = z
  .string()
  .max(MAX_ADDRESS, { abort: true, error: `must have at most ${MAX_ADDRESS} characters` })
  .regex(ADDRESS, "must be a plain email address, such as ada@example.com")
  .toLowerCase()
  .describe("An email address in plain ASCII; upper and lower case are equal");
