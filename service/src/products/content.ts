import { isDeepStrictEqual } from "node:util";
import type { Variable } from "@stoa/contract";
import { ApiError, type FieldProblem, fieldError, invalidRequest } from "../errors.ts";
import { parseMessages } from "../prompts/template.ts";
import { deriveVariables } from "../prompts/variables.ts";

export interface Content {
  type: string;
  content: string;
  contentFormat: "text" | "messages";
}

function mustBeWorkflow(content: string): void {
  let definition: unknown;
  try {
    definition = JSON.parse(content);
  } catch {
    throw invalidRequest("content", "must be the JSON text of a workflow/1 definition");
  }
  const isObject = typeof definition === "object" && definition !== null && !Array.isArray(definition);
  if (!isObject) throw invalidRequest("content", "must be a JSON object");
  if ((definition as { format?: unknown }).format !== "workflow/1") {
    throw invalidRequest("content.format", 'must be "workflow/1"');
  }
}

function undeclared(declared: Variable[], used: Variable[]): FieldProblem[] {
  const names = new Set(declared.map((variable) => variable.name));
  return used
    .filter(({ name }) => !names.has(name))
    .map(({ name }) => ({ field: "variables", reason: `does not declare ${name}, which the content uses` }));
}

function mustBeDistinct(declared: Variable[]): void {
  const seen = new Set<string>();
  declared.forEach(({ name }, index) => {
    if (seen.has(name)) throw invalidRequest(`variables[${index}].name`, `${name} is declared twice`);
    seen.add(name);
  });
}

/** The inputs of a product: as declared by its author, else derived from the content. Faults are 400 by field. */
export function inputsOf(product: Content, declared: Variable[] | undefined): Variable[] {
  if (product.type === "WORKFLOW") {
    mustBeWorkflow(product.content);
    return declared ?? [];
  }
  const used = deriveVariables(parseMessages(product.contentFormat, product.content));
  if (!declared) return used;
  mustBeDistinct(declared);
  const problems = undeclared(declared, used);
  if (problems.length > 0) throw fieldError("INVALID_REQUEST", problems);
  return declared;
}

/** The variables as their author described them; undefined when they only follow from the content. */
export function declaredOf(product: Content & { variables: Variable[] }): Variable[] | undefined {
  return isDeepStrictEqual(derivedFrom(product), product.variables) ? undefined : product.variables;
}

/** null of a content from before a rule that it breaks. */
function derivedFrom(product: Content): Variable[] | null {
  try {
    return inputsOf(product, undefined);
  } catch (error) {
    if (error instanceof ApiError) return null;
    throw error;
  }
}

const PREVIEW_CHARACTERS = 200;

/** What everyone may read: the author's own words, else the first fifth of the content, 200 characters at most. */
export function previewOf(preview: string, content: string): string {
  if (preview) return preview;
  const characters = Array.from(content.slice(0, PREVIEW_CHARACTERS * 2));
  const length = Math.min(PREVIEW_CHARACTERS, Math.floor(content.length / 5));
  return `${characters.slice(0, length).join("").trimEnd()}…`;
}
