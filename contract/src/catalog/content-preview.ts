const PREVIEW_CHARACTERS = 200;

/** Public: the author's preview, else the first fifth of the content, at most 200 characters. */
export function contentPreview(preview: string, content: string): string {
  if (preview) return preview;
  const characters = Array.from(content.slice(0, PREVIEW_CHARACTERS * 2));
  const length = Math.min(PREVIEW_CHARACTERS, Math.floor(content.length / 5));
  return `${characters.slice(0, length).join("").trimEnd()}…`;
}
