import type { ListToolsResult, Tool } from "@modelcontextprotocol/server";
import { toVisibleLine, type Variable } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { quoteSellerText, withVisibleTexts } from "./descriptions.ts";
import { evaluationTools } from "./evaluation-tools.ts";
import { executionSchema, executionTools } from "./execution-tools.ts";
import { toToolName } from "./names.ts";
import { listProductPage } from "./products.ts";
import { hasProducts, type RunnableProduct } from "./queries.ts";

/** Lists the tools of executions, for authors those of evaluations, then those of products, newest first. */
export async function listTools(
  ctx: Context,
  caller: Member,
  cursor: string | undefined,
): Promise<ListToolsResult> {
  const { products, ...page } = await listProductPage(ctx, caller, ["PROMPT", "WORKFLOW"], cursor);
  const tools = products.map(toTool);
  if (cursor !== undefined) return { tools, ...page };
  const ofAuthors = (await hasProducts(ctx.db, caller.userId)) ? evaluationTools : [];
  return { tools: [...executionTools, ...ofAuthors, ...tools], ...page };
}

/** A tool calls a provider: that may cost money, and each call has another output. */
const annotations = {
  readOnlyHint: false,
  destructiveHint: false,
  idempotentHint: false,
  openWorldHint: true,
};

const toTool = (product: RunnableProduct): Tool => ({
  name: toToolName(product),
  title: toVisibleLine(product.title),
  description: `Runs a ${product.type.toLowerCase()} with your own provider key, which may cost you money there.\n\n${quoteSellerText(product)}`,
  annotations,
  ...(product.type === "PROMPT" ? promptSchemas(product) : workflowSchemas(product)),
});

type Schemas = Pick<Tool, "inputSchema" | "outputSchema">;
type Schema = Schemas["inputSchema"];

const ID = { type: "string", maxLength: 100 };
const API_KEY_ID = {
  ...ID,
  description: "The id of a stored provider key. Default: your newest key that fits",
};
const API_KEYS = {
  type: "object",
  description: "Ids of stored provider keys, by provider. Default: your newest keys",
  additionalProperties: ID,
};

const promptSchemas = ({ variables }: RunnableProduct): Schemas => ({
  inputSchema: {
    type: "object",
    properties: {
      apiKeyId: API_KEY_ID,
      // A variable of the author with this name replaces the choice of a key.
      ...Object.fromEntries(
        variables.map((variable) => [variable.name, withVisibleTexts(toSchema(variable))]),
      ),
    },
    required: variables.filter(isNeeded).map(({ name }) => name),
    additionalProperties: false,
  },
  outputSchema: {
    type: "object",
    properties: {
      executionId: { type: "string" },
      output: { type: "string" },
      usage: { type: "object" },
      metadata: { type: "object" },
    },
    required: ["executionId", "output", "usage", "metadata"],
  },
});

const isNeeded = ({ required, default: defaultValue }: Variable) => required && defaultValue === undefined;

const toSchema = ({ name: _, required: __, ...schema }: Variable) => ({ type: "string", ...schema });

function workflowSchemas({ definition }: RunnableProduct): Schemas {
  const { input } = withVisibleTexts(JSON.parse(definition!)) as { input: Schema };
  return {
    inputSchema: { ...input, properties: { apiKeys: API_KEYS, ...input.properties } },
    outputSchema: executionSchema,
  };
}
