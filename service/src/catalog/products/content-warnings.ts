import { FOREIGN_TAG, hasInvisible, type ProductWarning } from "@stoa/contract";
import { ApiError, formatPath } from "../../core/errors.ts";
import { parseMessages, parseTemplate, type Template } from "../../formats/prompt-template/template.ts";
import { Workflow } from "../../formats/workflow-definition/workflow-schema.ts";
import type { Content } from "./content.ts";

const MAX_NAMED_TAGS = 3;
const MAX_TAG_CHARACTERS = 40;

/** Warns of template logic that `template/1` does not have, and of invisible characters. */
export function contentWarnings(product: Content): ProductWarning[] {
  return templatesOf(product).flatMap(({ field, text }) => {
    const template = parseTemplate(text);
    return [
      ...foreignTagWarnings(field, template),
      ...elseWarnings(field, template),
      ...invisibleWarnings(field, text),
    ];
  });
}

function foreignTagWarnings(field: string, template: Template): ProductWarning[] {
  const literals = template.filter((part) => typeof part === "string");
  const tags = [...new Set(literals.flatMap((text) => text.match(FOREIGN_TAG) ?? []))];
  if (tags.length === 0) return [];
  const reason = `holds ${joinTags(tags)}, which is sent to the model unchanged: a template has only variables, no conditions, loops, filters or partials. Remove it, or sell each variant as a product of its own; write \\{{ for two braces that are meant as text`;
  return [{ field, reason }];
}

function elseWarnings(field: string, template: Template): ProductWarning[] {
  if (!template.some((part) => typeof part !== "string" && part.name === "else")) return [];
  return [
    { field, reason: "contains {{else}}, which is read as a variable named else: remove or rename it" },
  ];
}

const invisibleWarnings = (field: string, text: string): ProductWarning[] =>
  hasInvisible(text)
    ? [
        {
          field,
          reason:
            "holds control, bidirectional or other invisible characters, which the model reads and buyers do not see: remove those that you did not intend",
        },
      ]
    : [];

function joinTags(tags: string[]): string {
  const shown = tags.slice(0, MAX_NAMED_TAGS).map(truncateTag).join(", ");
  const more = tags.length - MAX_NAMED_TAGS;
  return more > 0 ? `${shown} and ${more} more` : shown;
}

const truncateTag = (tag: string) =>
  tag.length > MAX_TAG_CHARACTERS ? `${tag.slice(0, MAX_TAG_CHARACTERS).toWellFormed()}…` : tag;

interface FieldText {
  field: string;
  text: string;
}

/** Returns nothing for content that breaks a newer rule: a run would refuse it anyway. */
function templatesOf(product: Content): FieldText[] {
  try {
    return product.type === "WORKFLOW" ? workflowTexts(product.content) : promptTexts(product);
  } catch (error) {
    if (error instanceof ApiError) return [];
    throw error;
  }
}

function promptTexts({ contentFormat, content }: Content): FieldText[] {
  if (contentFormat === "text") return [{ field: "content", text: content }];
  return messageTexts(["content"], parseMessages(contentFormat, content));
}

function workflowTexts(content: string): FieldText[] {
  const { success, data } = Workflow.safeParse(parsedOrNull(content));
  if (!success) return [];
  return data.steps.flatMap((step, index) => {
    const path = ["content", "steps", index];
    const [work, workPath] = step.type === "map" ? [step.do, [...path, "do"]] : [step, path];
    return work.type === "prompt" ? messageTexts([...workPath, "messages"], work.messages) : [];
  });
}

function parsedOrNull(content: string): unknown {
  try {
    return JSON.parse(content);
  } catch {
    return null;
  }
}

const messageTexts = (path: (string | number)[], messages: { content: string }[]): FieldText[] =>
  messages.map(({ content }, index) => ({ field: formatPath([...path, index, "content"]), text: content }));
