interface Place {
  to: string;
  label: string;
}

const PLACES: Record<string, Place> = {
  m: { to: "/search", label: "Market" },
  l: { to: "/library", label: "Library" },
  s: { to: "/studio", label: "Studio" },
  d: { to: "/settings", label: "Developers" },
};

/** Where the key `g` and then a letter lead. */
export const placesOf = ({ isAdmin }: { isAdmin: boolean }): Record<string, Place> =>
  isAdmin ? { ...PLACES, a: { to: "/admin", label: "Administration" } } : PLACES;
