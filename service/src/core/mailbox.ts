export interface Mailbox {
  name: string;
  address: string;
}

/** The characters of `<input type=email>`. Mail programs disagree about quotes, commas, line breaks and non-ASCII letters. */
const ADDRESS = /^[\w.!#$%&'*+/=?^`{|}~-]{1,64}@[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*$/;
const NAMED = /^(?:"([^"\p{Cc}]*)"|([^"<>@,;\p{Cc}]*?))\s*<([^<>]*)>$/u;

export const isEmailAddress = (text: string): boolean => text.length <= 254 && ADDRESS.test(text);

/** Parses `address`, `Name <address>` or `"Name, with marks" <address>`. */
export function parseMailbox(text: string): Mailbox | null {
  const [, quoted, plain = "", inside] = NAMED.exec(text) ?? [];
  const address = inside ?? text;
  return isEmailAddress(address) ? { name: quoted ?? plain, address } : null;
}
