/** At most so many UTF-16 units. Half a character at the end would be no text that an address can have. */
export const cutText = (text: string, max: number): string =>
  text.slice(0, max).replace(/[\uD800-\uDBFF]$/, "");

/** The part of /p/{slug}-{id} that people read. */
export const toSlug = (title: string): string =>
  cutText(
    title
      .normalize("NFKD")
      .replace(/\p{M}/gu, "")
      .toLowerCase()
      .replace(/[^\p{L}\p{N}]+/gu, "-")
      .replace(/^-+|-+$/g, ""),
    60,
  ).replace(/-+$/, "");

/** `{slug}-{id}`: the last part of a product's address. */
export const productPath = ({ id, title }: { id: string; title: string }): string => {
  const slug = toSlug(title);
  return slug === "" ? id : `${slug}-${id}`;
};
