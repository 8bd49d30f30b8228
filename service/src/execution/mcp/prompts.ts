import {
  type CompleteRequest,
  type CompleteResult,
  type GetPromptRequest,
  type GetPromptResult,
  type ListPromptsResult,
  type Prompt,
  ProtocolError,
  ProtocolErrorCode,
} from "@modelcontextprotocol/server";
import { toVisibleLine, toVisibleText, type Variable } from "@stoa/contract";
import { recordReveal } from "../../catalog/products/detail.ts";
import type { Context, Member } from "../../core/context.ts";
import type { Message } from "../../integrations/ai-providers/ai-provider.ts";
import { type Product, renderPrompt } from "../prompt-runs/prepare-run.ts";
import { quoteSellerText } from "./descriptions.ts";
import { toPromptName } from "./names.ts";
import { findProductByName, listProductPage } from "./products.ts";
import type { RunnableProduct } from "./queries.ts";

export async function listPrompts(
  ctx: Context,
  caller: Member,
  cursor: string | undefined,
): Promise<ListPromptsResult> {
  const { products, ...page } = await listProductPage(ctx, caller, ["PROMPT"], cursor);
  return { prompts: products.map(toPrompt), ...page };
}

const toPrompt = (product: RunnableProduct): Prompt => ({
  name: toPromptName(product),
  title: toVisibleLine(product.title),
  description: quoteSellerText(product),
  arguments: product.variables.map(toArgument),
});

const toArgument = ({ name, description, required, default: defaultValue, enum: choices }: Variable) => ({
  name,
  description: toVisibleText(
    [description, choices && `One of: ${choices.join(", ")}`].filter(Boolean).join(" "),
  ),
  required: required && defaultValue === undefined,
});

/** Renders the prompt. Showing its text ends the instant refund (`revealForfeitsInstantRefund`). */
export async function getPrompt(
  ctx: Context,
  caller: Member,
  { name, arguments: variables = {} }: GetPromptRequest["params"],
): Promise<GetPromptResult> {
  const product = await mustFindPrompt(ctx, caller, name);
  const { messages } = await renderPrompt(ctx, product, { variables, options: {} });
  await recordReveal(ctx, caller, product);
  const { authorName, versionDescription: description } = product;
  return {
    description: quoteSellerText({ authorName, description }),
    messages: messages.map(toPromptMessage),
  };
}

/** MCP has no system messages. */
const toPromptMessage = ({ role, content }: Message) => ({
  role: role === "assistant" ? ("assistant" as const) : ("user" as const),
  content: { type: "text" as const, text: content },
});

async function mustFindPrompt(ctx: Context, caller: Member, name: string): Promise<Product> {
  const product = await findProductByName(ctx, caller, name);
  if (product?.type === "PROMPT") return product;
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, "You have no prompt of this name.");
}

/** Returns the choices of a variable that begin with the typed text. */
export async function completeArgument(
  ctx: Context,
  caller: Member,
  { ref, argument }: CompleteRequest["params"],
): Promise<CompleteResult> {
  const product = ref.type === "ref/prompt" ? await mustFindPrompt(ctx, caller, ref.name) : null;
  const choices = product?.variables.find(({ name }) => name === argument.name)?.enum ?? [];
  const typed = argument.value.toLowerCase();
  const values = choices.filter((choice) => choice.toLowerCase().startsWith(typed));
  return { completion: { values, total: values.length, hasMore: false } };
}
