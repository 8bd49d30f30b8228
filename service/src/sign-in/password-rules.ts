import { NewPassword } from "@stoa/contract";
import { invalidRequest } from "../errors.ts";
import { commonPasswords } from "./common-passwords.ts";

/**
 * No rules of composition: they make people write `Password1!`. What counts is length, and that it is not what everybody
 * tries first.
 */
export function mustBeGoodPassword(password: string, email: string): void {
  const length = NewPassword.safeParse(password);
  if (!length.success) throw invalidRequest("password", length.error.issues[0]!.message);
  const lower = password.toLowerCase();
  if (lower === email || lower === email.split("@")[0])
    throw invalidRequest("password", "must not be your own address");
  if (commonPasswords.has(lower) || isOneCharacter(lower))
    throw invalidRequest("password", "is among the first that anybody would try: choose another");
}

const isOneCharacter = (text: string) => new Set(text).size === 1;
