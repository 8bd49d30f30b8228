import type { TestCaseInput } from "@stoa/contract";
import { findSchemaIssues } from "@stoa/evaluation/json-schema";
import { type FieldProblem, formatPath } from "../../core/errors.ts";
import { checkVariables } from "../../formats/prompt-template/variables.ts";
import { checkInput } from "../../formats/workflow-definition/inputs.ts";
import { Workflow } from "../../formats/workflow-definition/workflow-schema.ts";
import type { ProductForReader } from "../products/queries.ts";

type TestedProduct = Pick<ProductForReader, "type" | "content" | "variables">;

/** Names the place of each problem, such as `cases[3].assert[0].value` or `cases[3].input.topic`. */
export async function findCaseProblems(
  product: TestedProduct,
  cases: TestCaseInput[],
): Promise<FieldProblem[]> {
  const { checkTestCases } = await import("@stoa/evaluation");
  const checked = checkTestCases(cases, { checkSchema });
  const problems = "problems" in checked ? checked.problems : [];
  return [
    ...problems.map(({ path, reason }) => ({ field: `cases${path}`, reason })),
    ...findInputProblems(product, cases),
  ];
}

/** A schema must be one that our subset of JSON Schema can check. */
export const checkSchema = (schema: unknown): string[] =>
  findSchemaIssues(schema, []).map(({ path, reason }) =>
    [formatPath(path), reason].filter(Boolean).join(" "),
  );

/** The problems of inputs that the product would refuse. */
export function findInputProblems(product: TestedProduct, cases: TestCaseInput[]): FieldProblem[] {
  const check = inputCheckOf(product);
  return cases.flatMap(({ input }, index) =>
    check(input).map(({ field, reason }) => ({
      field: `cases[${index}].${field.replace(/^variables/, "input")}`,
      reason,
    })),
  );
}

function inputCheckOf({
  type,
  content,
  variables,
}: TestedProduct): (input: Record<string, unknown>) => FieldProblem[] {
  const problemsOf = (checked: object & { problems?: FieldProblem[] }) => checked.problems ?? [];
  if (type === "PROMPT") return (input) => problemsOf(checkVariables(variables, input));
  const workflow = Workflow.parse(JSON.parse(content));
  return (input) => problemsOf(checkInput(workflow.input, input));
}
