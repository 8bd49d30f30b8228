import type { CreateChatCompletion, Variable } from "@stoa/contract";
import { invalidRequest, ruleViolation } from "../../core/errors.ts";
import { findShapeProblem, MAX_MEMBERS } from "../../platform/http/json-body.ts";

type MessageInput = Pick<CreateChatCompletion, "messages" | "metadata">;

interface ConversationTurn {
  /** Path in the request. */
  path: string;
  role: string;
  text: string;
  /** The last user message, which would hold the variables. */
  isLast: boolean;
}

/** The variables of a request by name, or one text, with their path in the request. */
export type ExtractedInput = {
  path: string;
  /** The messages that hold no variables: a system message, the turns before; beside `metadata.variables` the last user message, too. */
  conversation: ConversationTurn[];
} & ({ variables: Record<string, unknown> } | { text: string });

/** A prompt that declares a variable of this name takes the conversation: as JSON text, a list of {role, content}. */
const CONVERSATION = "conversation";

/** `metadata.variables` if given, else the last user message. Throws if neither can be read. */
export function extractInput({ messages, metadata }: MessageInput): ExtractedInput {
  const given = metadata?.variables;
  const last = messages.findLastIndex(({ role }) => role === "user");
  const turns = toTurns(messages, last);
  if (given !== undefined)
    return { variables: parseVariables(given), path: "metadata.variables", conversation: turns };
  const conversation = turns.filter(({ isLast }) => !isLast);
  const at = `messages[${last}].content`;
  const text = joinText(messages[last]?.content ?? "", at);
  // An empty message is what clients send that must send one.
  if (text.trim() === "") return { variables: {}, path: at, conversation };
  const variables = parseObject(text, at);
  return variables ? { variables, path: at, conversation } : { text, path: at, conversation };
}

/** An empty message says nothing that could be lost. */
const toTurns = (messages: MessageInput["messages"], last: number): ConversationTurn[] =>
  messages.flatMap(({ role, content }, index) => {
    const text = joinText(content ?? "", `messages[${index}].content`);
    return text.trim() === "" ? [] : [{ path: `messages[${index}]`, role, text, isLast: index === last }];
  });

function parseVariables(given: string | Record<string, unknown>): Record<string, unknown> {
  const variables = typeof given === "string" ? parseObject(given, "metadata.variables") : given;
  if (!variables) throw invalidRequest("metadata.variables", "must be a JSON object");
  return variables;
}

function joinText(content: string | { type: string; text?: string | undefined }[], at: string): string {
  if (typeof content === "string") return content;
  const texts = content.map(({ type, text }, index) => {
    if (type === "text" && text !== undefined) return text;
    throw invalidRequest(`${at}[${index}]`, "cannot be honoured: variables are text");
  });
  return texts.join("");
}

/** null: it is no JSON text of an object. */
function parseObject(text: string, at: string): Record<string, unknown> | null {
  if (!/^\s*\{/.test(text)) return null;
  const fault = findShapeProblem(Buffer.from(text), MAX_MEMBERS);
  try {
    // A text that is no JSON may have any shape.
    const value = JSON.parse(text) as Record<string, unknown>;
    if (!fault) return value;
  } catch {
    return null;
  }
  throw ruleViolation(at, fault);
}

/** The values for a prompt. A conversation that it does not take is refused: without it the answer would be to another question. */
export function toVariables(
  extracted: ExtractedInput,
  declared: readonly Variable[],
): Record<string, unknown> {
  if (!declared.some(({ name }) => name === CONVERSATION)) {
    mustHaveNoConversation(extracted);
    return toDeclaredVariables(extracted, declared);
  }
  const turns = extracted.conversation.map(({ role, text }) => ({ role, content: text }));
  const others = declared.filter(({ name }) => name !== CONVERSATION);
  return { [CONVERSATION]: JSON.stringify(turns), ...toDeclaredVariables(extracted, others) };
}

function mustHaveNoConversation({ conversation: [turn] }: ExtractedInput): void {
  if (!turn) return;
  const reason = turn.isLast
    ? "would be ignored beside metadata.variables: leave its content empty, or send the variables in it and no metadata.variables"
    : `would be ignored: this prompt takes one user message, without system message and earlier turns (a seller's prompt takes them by a variable named ${CONVERSATION})`;
  throw ruleViolation(turn.path, reason);
}

/** A text alone is the value of the one variable that must be given, or of the only one that there is. */
function toDeclaredVariables(
  extracted: ExtractedInput,
  declared: readonly Variable[],
): Record<string, unknown> {
  if ("variables" in extracted) return extracted.variables;
  // A prompt without variables says the same whatever it is told.
  if (declared.length === 0) return {};
  const needed = declared.filter((variable) => variable.required && variable.default === undefined);
  const [only, another] = needed.length === 0 ? declared : needed;
  if (only && !another) return { [only.name]: extracted.text };
  const names = declared.map(({ name }) => name).join(", ");
  throw ruleViolation(extracted.path, `must be a JSON object with the variables of this prompt: ${names}`);
}
