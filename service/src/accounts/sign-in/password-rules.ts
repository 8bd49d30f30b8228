import { MIN_PASSWORD, NewPassword } from "@stoa/contract";
import { invalidRequest } from "../../core/errors.ts";
import { firstOf } from "../../core/required.ts";
import { commonPasswords } from "./common-passwords.ts";

const SERVICE_NAME = "stoa";
/** Shorter parts of a name occur in many words by chance. */
const MIN_WORD = 3;

/**
 * Length, and not among the most common. No rules of composition: they produce `Password1!`. Words of the account and
 * the service do not count (NIST SP 800-63B, 3.1.1.2).
 */
export function validatePassword(password: string, account: { email: string; name: string }): void {
  const length = NewPassword.safeParse(password);
  if (!length.success) throw invalidRequest("password", firstOf(length.error.issues).message);
  const lower = password.toLowerCase();
  if (isCommonPassword(lower))
    throw invalidRequest("password", "is among the first that anybody would try: choose another");
  const rest = withoutWords(lower, listAccountWords(account));
  if (rest !== lower && (rest.length < MIN_PASSWORD || isCommonPassword(rest)))
    throw invalidRequest(
      "password",
      `must have at least ${MIN_PASSWORD} characters besides your name, your address and the name of this service, and not the most common ones`,
    );
}

const isCommonPassword = (text: string) => commonPasswords.has(text) || new Set(text).size === 1;

/** Longest first: the whole address before its parts. */
function listAccountWords({ email, name }: { email: string; name: string }): string[] {
  const [local = ""] = email.split("@");
  const words = [email, local, name, ...email.split(/[^\p{L}\p{N}]+/u), ...name.split(/\s+/), SERVICE_NAME];
  return words
    .map((word) => word.toLowerCase())
    .filter((word) => word.length >= MIN_WORD)
    .sort((a, b) => b.length - a.length);
}

const withoutWords = (text: string, words: string[]) =>
  words.reduce((rest, word) => rest.replaceAll(word, ""), text);
