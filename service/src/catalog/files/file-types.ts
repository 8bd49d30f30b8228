/** A kind of file that is taken: what it must look like inside, and what it may call itself. */
export interface FileType {
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
const fileType = (
  type: string,
  family: FileType["family"],
  extensions: string[],
  aliases: string[] = [],
  entry?: string,
): FileType => ({ type, family, extensions, aliases, ...(entry !== undefined && { entry }) });

/** Of kinds with the same inside the first is meant when nothing else tells. */
export const fileTypes: readonly FileType[] = [
  fileType("text/plain", "text", ["txt"]),
  fileType("text/markdown", "text", ["md"], ["text/x-markdown"]),
  fileType("application/json", "text", ["json"]),
  fileType("application/jsonl", "text", ["jsonl"], ["application/x-ndjson", "application/x-jsonlines"]),
  // Windows says Excel of what Excel would open.
  fileType("text/csv", "text", ["csv"], ["application/csv", "application/vnd.ms-excel"]),
  fileType("text/tab-separated-values", "text", ["tsv"]),
  fileType("application/yaml", "text", ["yaml", "yml"], ["text/yaml", "text/x-yaml", "application/x-yaml"]),
  fileType("application/pdf", "pdf", ["pdf"]),
  fileType("application/zip", "zip", ["zip"], ["application/x-zip-compressed", "application/x-zip"]),
  fileType(`${OFFICE}.wordprocessingml.document`, "zip", ["docx"], [], "word/document.xml"),
  fileType(`${OFFICE}.spreadsheetml.sheet`, "zip", ["xlsx"], [], "xl/workbook.xml"),
  fileType(`${OFFICE}.presentationml.presentation`, "zip", ["pptx"], [], "ppt/presentation.xml"),
  fileType("image/png", "png", ["png"]),
  fileType("image/jpeg", "jpeg", ["jpg", "jpeg"], ["image/jpg", "image/pjpeg"]),
  fileType("image/webp", "webp", ["webp"]),
  fileType("image/gif", "gif", ["gif"]),
  fileType("image/avif", "avif", ["avif"]),
];

/** What every client sends when it does not know, and what is understood when it says nothing. */
export const GENERIC_MEDIA_TYPES = new Set(["application/octet-stream", "binary/octet-stream", "text/plain"]);

export const fileTypeOfExtension = (extension: string): FileType | undefined =>
  fileTypes.find(({ extensions }) => extensions.includes(extension));
