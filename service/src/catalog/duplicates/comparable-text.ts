interface Content {
  type: string;
  content: string;
  contentFormat: "text" | "messages";
}

/** The fields of messages and steps that an author writes. The rest of a definition is alike in all workflows. */
const WRITTEN_FIELDS = new Set([
  ...["content", "value", "items", "when", "prompt", "result"],
  ...["text", "compareTo"],
]);

/** The texts of a product that are compared with those of others. */
export function toComparableText({ type, content, contentFormat }: Content): string {
  if (type !== "WORKFLOW" && contentFormat === "text") return content;
  try {
    return [...writtenTexts(JSON.parse(content))].join("\n");
  } catch {
    return content;
  }
}

function* writtenTexts(value: unknown, field = ""): Generator<string> {
  if (typeof value === "string") {
    if (WRITTEN_FIELDS.has(field)) yield value;
  } else if (Array.isArray(value)) for (const inner of value) yield* writtenTexts(inner, field);
  else if (typeof value === "object" && value !== null)
    for (const [name, inner] of Object.entries(value)) yield* writtenTexts(inner, name);
}
