/** An accepted file type: its content, extensions and media types. */
export interface FileType {
  type: string;
  /** The check that its content must pass. */
  family: "text" | "pdf" | "zip" | "png" | "jpeg" | "webp" | "gif" | "avif";
  extensions: string[];
  /** Other media types that clients send for it. */
  aliases: string[];
  /** For a zip family: the entry that identifies this type. */
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

/** Of types with the same content, the first is the default. */
export const fileTypes: readonly FileType[] = [
  fileType("text/plain", "text", ["txt"]),
  fileType("text/markdown", "text", ["md"], ["text/x-markdown"]),
  fileType("application/json", "text", ["json"]),
  fileType("application/jsonl", "text", ["jsonl"], ["application/x-ndjson", "application/x-jsonlines"]),
  // Windows sends Excel's media type for CSV.
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

/** Media types that clients send for an unknown type, and the default of a part without one. */
export const GENERIC_MEDIA_TYPES = new Set(["application/octet-stream", "binary/octet-stream", "text/plain"]);

export const fileTypeOfExtension = (extension: string): FileType | undefined =>
  fileTypes.find(({ extensions }) => extensions.includes(extension));
