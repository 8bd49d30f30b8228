import { isDeepStrictEqual } from "node:util";
import type { Provider, Variable } from "@stoa/contract";
import { ApiError, type FieldProblem, fieldError, invalidRequest } from "../../core/errors.ts";
import { parseMessages } from "../../formats/prompt-template/template.ts";
import { deriveVariables } from "../../formats/prompt-template/variables.ts";
import { checkWorkflow, listProviders } from "../../formats/workflow-definition/check-workflow.ts";
import { listInputNames, toVariables } from "../../formats/workflow-definition/inputs.ts";

export interface Content {
  type: string;
  content: string;
  contentFormat: "text" | "messages";
}

function undeclaredProblems(declared: Variable[], used: Variable[]): FieldProblem[] {
  const names = new Set(declared.map((variable) => variable.name));
  return used
    .filter(({ name }) => !names.has(name))
    .map(({ name }) => ({ field: "variables", reason: `does not declare ${name}, which the content uses` }));
}

function unusedProblems(declared: Variable[], used: Variable[]): FieldProblem[] {
  const names = new Set(used.map((variable) => variable.name));
  return declared.flatMap(({ name }, index) =>
    names.has(name)
      ? []
      : [{ field: `variables[${index}].name`, reason: `${name} is no input of the workflow` }],
  );
}

function mustBeDistinct(declared: Variable[]): void {
  const seen = new Set<string>();
  declared.forEach(({ name }, index) => {
    if (seen.has(name)) throw invalidRequest(`variables[${index}].name`, `${name} is declared twice`);
    seen.add(name);
  });
}

export interface ContentInfo {
  /** Declared by the author, else derived from the content. */
  variables: Variable[];
  /** The providers of a workflow's steps. A prompt names none: its buyer chooses. */
  providers: Provider[];
}

/** Parses and checks the content. Problems are 400 with their fields. */
export async function analyzeContent(
  product: Content,
  declared: Variable[] | undefined,
): Promise<ContentInfo> {
  const { used, open, providers } = await (product.type === "WORKFLOW" ? analyzeWorkflow : analyzePrompt)(
    product,
  );
  mustBeSendable(used);
  if (!declared) return { variables: used, providers };
  mustBeDistinct(declared);
  const problems = [...undeclaredProblems(declared, used), ...(open ? [] : unusedProblems(declared, used))];
  if (problems.length > 0) throw fieldError("INVALID_REQUEST", problems);
  return { variables: declared, providers };
}

const MAX_VARIABLES = 100;

/** A buyer must be able to send each name in JSON and in a form. */
function mustBeSendable(used: Variable[]): void {
  if (used.length > MAX_VARIABLES)
    throw invalidRequest("content", `names ${used.length} variables; at most ${MAX_VARIABLES} are allowed`);
  // Our JSON parser refuses this key, so a buyer could never send a value for it.
  if (used.some(({ name }) => name === "__proto__"))
    throw invalidRequest("content", "names the variable __proto__, which no request can give: rename it");
}

interface UsedVariables {
  used: Variable[];
  /** Whether a buyer may send inputs that the content does not use. */
  open: boolean;
  providers: Provider[];
}

async function analyzeWorkflow({ content }: Content): Promise<UsedVariables> {
  const checked = await checkWorkflow(content);
  if ("problems" in checked) throw fieldError("INVALID_REQUEST", checked.problems);
  const { workflow } = checked;
  return {
    used: toVariables(workflow.input),
    open: listInputNames(workflow.input) === null,
    providers: listProviders(workflow),
  };
}

async function analyzePrompt({ contentFormat, content }: Content): Promise<UsedVariables> {
  return { used: deriveVariables(parseMessages(contentFormat, content)), open: true, providers: [] };
}

/** undefined: the variables are derived from the content. */
export async function declaredVariables(
  product: Content & { variables: Variable[] },
): Promise<Variable[] | undefined> {
  const derived = await derivedVariables(product);
  return !derived || isDeepStrictEqual(derived, product.variables) ? undefined : product.variables;
}

/** null: the content breaks a newer rule. This must not prevent its correction. */
async function derivedVariables(product: Content): Promise<Variable[] | null> {
  try {
    return (await analyzeContent(product, undefined)).variables;
  } catch (error) {
    if (error instanceof ApiError) return null;
    throw error;
  }
}
