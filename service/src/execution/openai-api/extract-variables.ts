import type { CreateChatCompletion, Variable } from "@stoa/contract";
import { invalidRequest, ruleViolation } from "../../core/errors.ts";
import { findShapeProblem, MAX_MEMBERS } from "../../platform/http/json-body.ts";

type MessageInput = Pick<CreateChatCompletion, "messages" | "metadata">;

interface ConversationTurn {
  /** Path in the request. */
  path: string;
  role: string;
  text: string;
  /** The last user message, which may contain the variables. */
  isLast: boolean;
}

/** The variables of a request by name, or one text, with their path in the request. */
export type ExtractedInput = {
  path: string;
  /** Messages without variables: a system message, earlier turns, and with `metadata.variables` also the last user message. */
  conversation: ConversationTurn[];
} & ({ variables: Record<string, unknown> } | { text: string });

/** A prompt that declares this variable gets the conversation as JSON text, a list of {role, content}. */
const CONVERSATION = "conversation";

/** Reads `metadata.variables`, else the last user message. Throws if neither is valid. */
export function extractInput({ messages, metadata }: MessageInput): ExtractedInput {
  const fromMetadata = metadata?.variables;
  const last = messages.findLastIndex(({ role }) => role === "user");
  const turns = toTurns(messages, last);
  if (fromMetadata !== undefined)
    return { variables: parseVariables(fromMetadata), path: "metadata.variables", conversation: turns };
  const conversation = turns.filter(({ isLast }) => !isLast);
  const at = `messages[${last}].content`;
  const text = joinText(messages[last]?.content ?? "", at);
  // Some clients must send a message and send an empty one.
  if (text.trim() === "") return { variables: {}, path: at, conversation };
  const variables = parseObject(text, at);
  return variables ? { variables, path: at, conversation } : { text, path: at, conversation };
}

/** Drops empty messages, which contain nothing to lose. */
const toTurns = (messages: MessageInput["messages"], last: number): ConversationTurn[] =>
  messages.flatMap(({ role, content }, index) => {
    const text = joinText(content ?? "", `messages[${index}].content`);
    return text.trim() === "" ? [] : [{ path: `messages[${index}]`, role, text, isLast: index === last }];
  });

function parseVariables(input: string | Record<string, unknown>): Record<string, unknown> {
  const variables = typeof input === "string" ? parseObject(input, "metadata.variables") : input;
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

/** null: the text is not a JSON object. */
function parseObject(text: string, at: string): Record<string, unknown> | null {
  if (!/^\s*\{/.test(text)) return null;
  const fault = findShapeProblem(Buffer.from(text), MAX_MEMBERS);
  try {
    // The limits of shape do not apply to text that is not JSON.
    const value = JSON.parse(text) as Record<string, unknown>;
    if (!fault) return value;
  } catch {
    return null;
  }
  throw ruleViolation(at, fault);
}

/** The values for a prompt. Refuses a conversation that the prompt does not declare, because the answer would ignore it. */
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

/** A plain text is the value of the only required variable, or of the only variable. */
function toDeclaredVariables(
  extracted: ExtractedInput,
  declared: readonly Variable[],
): Record<string, unknown> {
  if ("variables" in extracted) return extracted.variables;
  // The text cannot change a prompt without variables.
  if (declared.length === 0) return {};
  const requiredVariables = declared.filter(
    (variable) => variable.required && variable.default === undefined,
  );
  const [only, another] = requiredVariables.length === 0 ? declared : requiredVariables;
  if (only && !another) return { [only.name]: extracted.text };
  const names = declared.map(({ name }) => name).join(", ");
  throw ruleViolation(extracted.path, `must be a JSON object with the variables of this prompt: ${names}`);
}
