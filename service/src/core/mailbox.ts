export interface Mailbox {
  name: string;
  address: string;
}

/** What browsers take in `<input type=email>`: no quotes, commas, line breaks or letters beyond ASCII, which mail programs read in different ways. */
const ADDRESS = /^[\w.!#$%&'*+/=?^`{|}~-]{1,64}@[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*$/;
const NAMED = /^(?:"([^"\p{Cc}]*)"|([^"<>@,;\p{Cc}]*?))\s*<([^<>]*)>$/u;

export const isEmailAddress = (text: string): boolean => text.length <= 254 && ADDRESS.test(text);

/** `address`, `Name <address>` or `"Name, with marks" <address>`; null for anything else. */
export function parseMailbox(text: string): Mailbox | null {
  const [, quoted, plain = "", inside] = NAMED.exec(text) ?? [];
  const address = inside ?? text;
  return isEmailAddress(address) ? { name: quoted ?? plain, address } : null;
}
