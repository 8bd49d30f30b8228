/** Where the key `g` and then a letter lead. */
export const PLACES: Record<string, { to: string; label: string }> = {
  m: { to: "/search", label: "Market" },
  l: { to: "/library", label: "Library" },
  d: { to: "/settings", label: "Developers" },
  a: { to: "/account", label: "Account" },
};
