/** A kind of file that is taken: what it must look like inside, and what it may call itself. */
export interface Kind {
  type: string;
  /** How its bytes are judged. */
  family: "text" | "pdf" | "zip" | "png" | "jpeg" | "webp" | "gif" | "avif";
  extensions: string[];
  /** Other media types that clients send for it. */
  aliases: string[];
  /** Of the family zip: the entry that makes it this kind. */
  entry?: string;
}

const OFFICE = "application/vnd.openxmlformats-officedocument";
const kind = (
  type: string,
  family: Kind["family"],
  extensions: string[],
  aliases: string[] = [],
  entry?: string,
): Kind => ({ type, family, extensions, aliases, ...(entry !== undefined && { entry }) });

/** Of kinds with the same inside the first is meant when nothing else tells. */
export const kinds: readonly Kind[] = [
  kind("text/plain", "text", ["txt"]),
  kind("text/markdown", "text", ["md"], ["text/x-markdown"]),
  kind("application/json", "text", ["json"]),
  kind("application/jsonl", "text", ["jsonl"], ["application/x-ndjson", "application/x-jsonlines"]),
  // Windows says Excel of what Excel would open.
  kind("text/csv", "text", ["csv"], ["application/csv", "application/vnd.ms-excel"]),
  kind("text/tab-separated-values", "text", ["tsv"]),
  kind("application/yaml", "text", ["yaml", "yml"], ["text/yaml", "text/x-yaml", "application/x-yaml"]),
  kind("application/pdf", "pdf", ["pdf"]),
  kind("application/zip", "zip", ["zip"], ["application/x-zip-compressed", "application/x-zip"]),
  kind(`${OFFICE}.wordprocessingml.document`, "zip", ["docx"], [], "word/document.xml"),
  kind(`${OFFICE}.spreadsheetml.sheet`, "zip", ["xlsx"], [], "xl/workbook.xml"),
  kind(`${OFFICE}.presentationml.presentation`, "zip", ["pptx"], [], "ppt/presentation.xml"),
  kind("image/png", "png", ["png"]),
  kind("image/jpeg", "jpeg", ["jpg", "jpeg"], ["image/jpg", "image/pjpeg"]),
  kind("image/webp", "webp", ["webp"]),
  kind("image/gif", "gif", ["gif"]),
  kind("image/avif", "avif", ["avif"]),
];

/** What every client sends when it does not know, and what is understood when it says nothing. */
export const UNSAID = new Set(["application/octet-stream", "binary/octet-stream", "text/plain"]);

export const kindOfExtension = (extension: string): Kind | undefined =>
  kinds.find(({ extensions }) => extensions.includes(extension));
