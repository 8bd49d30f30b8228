import type { Account } from "@stoa/sdk";

/** What the form edits; an empty country or handle is none. */
export interface Profile {
  name: string;
  handle: string;
  bio: string;
  links: { label: string; url: string }[];
  country: string;
}

export const toProfile = ({ name, handle, bio, links, country }: Account): Profile => ({
  name,
  handle: handle ?? "",
  bio,
  links: links.map(({ label, url }) => ({ label: label ?? "", url })),
  country: country ?? "",
});

/** The fields that differ. */
export const changesOf = (before: Profile, after: Profile): Partial<Profile> =>
  Object.fromEntries(
    Object.entries(after).filter(
      ([field, value]) => JSON.stringify(value) !== JSON.stringify(before[field as keyof Profile]),
    ),
  );
