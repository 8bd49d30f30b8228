import { MOST_CHARACTERS, MOST_ENTRIES, MOST_VARIABLES } from "../../lib/content-limits.ts";
import { formatCount } from "../../lib/format.ts";
import { ROLES, readMessages } from "../../lib/prompt-variables.ts";
import type { Draft, DraftField } from "./draft-fields.ts";

export type FieldErrors = Partial<Record<DraftField, string>>;

/** The sentences for values that the service would refuse. Such fields are not saved until they are right. */
export function findFieldErrors(draft: Draft): FieldErrors {
  const { title, price, commission, content } = draft;
  return {
    ...(title.trim() === "" && { title: "Enter a title." }),
    ...(title.trim().length > 120 && { title: "Use at most 120 characters." }),
    ...(!(Number(price) > 0) && { price: "Enter a price above 0." }),
    ...(!(commission.trim() !== "" && Number(commission) >= 0 && Number(commission) <= 100) && {
      commission: "Enter a percentage from 0 to 100.",
    }),
    ...(content.trim() === "" && { content: "Write what the model should do." }),
    ...(content.length > MOST_CHARACTERS && {
      content: `Use at most ${formatCount(MOST_CHARACTERS)} characters.`,
    }),
    ...findEntryErrors(draft),
    ...findMessageErrors(draft),
    ...findVariableErrors(draft),
  };
}

function findEntryErrors(draft: Draft): FieldErrors {
  const errors: FieldErrors = {};
  for (const field of ["tags", "requirements", "features"] as const) {
    const [entries, characters] = MOST_ENTRIES[field];
    if (draft[field].filter((entry) => entry.trim() !== "").length > entries)
      errors[field] = `Use at most ${entries} entries.`;
    if (draft[field].some((entry) => entry.trim().length > characters))
      errors[field] = `Use at most ${characters} characters for each.`;
  }
  return errors;
}

const PROMPT: readonly DraftField[] = ["content", "contentFormat", "variables"];

/** Whether the field waits until it is right. Content and variables are stored together. */
export const isWrong = (field: DraftField, errors: FieldErrors): boolean =>
  field in errors || (PROMPT.includes(field) && PROMPT.some((one) => one in errors));

function findMessageErrors({ content, contentFormat }: Draft): FieldErrors {
  if (contentFormat === "text") return {};
  const messages = readMessages(content);
  if (!messages) return { content: "Write a JSON list of messages, each with role and content." };
  const wrong = messages.findIndex(({ role }) => !ROLES.some((known) => known === role));
  if (wrong !== -1) return { content: `Message ${wrong + 1}: the role must be one of ${ROLES.join(", ")}.` };
  const empty = messages.findIndex((message) => message.content === "");
  if (empty !== -1) return { content: `Message ${empty + 1} is empty.` };
  if (!messages.some(({ role }) => role === "user")) return { content: "Add a message with the role user." };
  const late = messages.findIndex(
    ({ role }, at) => at > 0 && role === "system" && messages[at - 1]?.role !== "system",
  );
  return late === -1 ? {} : { content: `Message ${late + 1}: system messages come before all others.` };
}

function findVariableErrors({ variables }: Draft): FieldErrors {
  if (variables.length > MOST_VARIABLES) return { variables: `Use at most ${MOST_VARIABLES} variables.` };
  const isEmptyChoice = variables.find((one) => one.enum?.some((choice) => choice === ""));
  if (isEmptyChoice) return { variables: `A choice of ${isEmptyChoice.name} is empty.` };
  const wrong = variables.find(
    ({ enum: choices, default: standard }) => choices && standard && !choices.includes(standard),
  );
  return wrong ? { variables: `The default of ${wrong.name} is none of its choices.` } : {};
}
