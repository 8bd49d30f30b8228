/** A title as part of a file's name, in letters that every file system knows. */
export const slugOf = (title: string): string =>
  title
    .normalize("NFKD")
    .replace(/\p{Mark}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 60) || "prompt";
