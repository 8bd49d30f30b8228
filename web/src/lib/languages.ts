const names = new Intl.DisplayNames("en", { type: "language", fallback: "code" });

/** The English name of a BCP 47 tag, or the tag itself if it is none. */
export function languageName(tag: string): string {
  try {
    return names.of(tag) ?? tag;
  } catch {
    return tag;
  }
}

/** Those that a search offers; the address accepts every other tag, too. */
export const LANGUAGES = [
  "en",
  "de",
  "es",
  "fr",
  "it",
  "pt",
  "nl",
  "pl",
  "tr",
  "ru",
  "ar",
  "hi",
  "ja",
  "ko",
  "zh",
];
