import { INVISIBLE_IN_TEXT } from "@stoa/contract/invisible-characters";
import { FOREIGN_TAG, listTemplateTags } from "@stoa/contract/prompt-template";
import { deriveVariables, hasDetails } from "../../lib/prompt-variables.ts";
import type { Draft } from "./draft-fields.ts";

export interface Finding {
  /** Of the kind, for the marks in the text. */
  kind: "variable" | "hidden" | "secret" | "role" | "tag";
  severity: "warning" | "note";
  /** What is wrong. */
  fact: string;
  /** What follows, or what to do. */
  advice: string;
  /** In the content; null: it stands elsewhere. */
  place: { from: number; to: number } | null;
  /** Its details are where to fix it. */
  variable?: string;
  fix?: { label: string; apply: (draft: Draft) => Partial<Draft> };
}

const MOST_OF_A_KIND = 5;

/** What a seller should look at before buyers do. Nothing of it prevents the publication. */
export const lintPrompt = (draft: Draft): Finding[] =>
  [
    findHidden(draft),
    findSecrets(draft),
    findForgedRoles(draft),
    findTags(draft),
    findVariables(draft),
  ].flatMap((findings) => findings.slice(0, MOST_OF_A_KIND));

function findHidden({ content }: Draft): Finding[] {
  return [...content.matchAll(INVISIBLE_IN_TEXT)].map((match) => {
    const point = (match[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
    const isMark = /\p{Bidi_Control}/u.test(match[0]);
    return {
      kind: "hidden",
      severity: "warning",
      fact: `${isMark ? "Bidirectional" : "Hidden"} character U+${point}.`,
      advice: "The model reads it, and buyers do not see it.",
      place: { from: match.index, to: match.index + match[0].length },
      fix: {
        label: "Remove all",
        apply: (draft) => ({ content: draft.content.replace(INVISIBLE_IN_TEXT, "") }),
      },
    };
  });
}

/** Prefixes that providers give to keys, so that leaked ones are found. */
const SECRETS =
  /\b(?:sk-(?:ant-|proj-)?[A-Za-z0-9_-]{20,}|AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{30,}|AIza[0-9A-Za-z_-]{30,}|xox[abprs]-[A-Za-z0-9-]{10,}|stoa_(?:live|test)_[A-Za-z0-9]{10,})|-----BEGIN [A-Z ]*PRIVATE KEY-----/g;

function findSecrets({ content }: Draft): Finding[] {
  return [...content.matchAll(SECRETS)].map((match) => ({
    kind: "secret",
    severity: "warning",
    fact: `${match[0].slice(0, 8)}… looks like a key.`,
    advice: "Every buyer could read it. Remove it here, and revoke it where it is from.",
    place: { from: match.index, to: match.index + match[0].length },
  }));
}

/** Words with which a chat of a model begins a message, in the middle of one. */
const FORGED_ROLE =
  /^[ \t]*(?:#+[ \t]*)?(?:system|assistant|user|human|ai)[ \t]*:(?=[ \t]*\S|$)|<\|(?:im_start|im_end|system|user|assistant|eot_id|start_header_id)\|>|\[\/?INST\]|<<\/?SYS>>/gim;

function findForgedRoles({ content, contentFormat }: Draft): Finding[] {
  const advice =
    contentFormat === "text"
      ? "Text with roles in it can be imitated by a buyer's value. Write it as messages."
      : "A buyer's value can imitate it. Give it a message of its own.";
  return [...content.matchAll(FORGED_ROLE)].map((match) => ({
    kind: "role",
    severity: "warning",
    fact: `“${match[0].trim()}” looks like the beginning of a message.`,
    advice,
    place: { from: match.index, to: match.index + match[0].length },
  }));
}

function findTags({ content }: Draft): Finding[] {
  const known = new Set(listTemplateTags(content).map(({ from }) => from));
  const foreign = [...content.matchAll(FOREIGN_TAG)].filter(
    ({ index }) => !known.has(index) && content[index - 1] !== "\\",
  );
  return foreign.map((match) => ({
    kind: "tag",
    severity: "warning",
    fact: `${match[0].slice(0, 40)} goes to the model as it is.`,
    advice: "A template has variables only, no conditions, loops or filters. Write \\{{ for literal braces.",
    place: { from: match.index, to: match.index + match[0].length },
  }));
}

function findVariables(draft: Draft): Finding[] {
  const tags = listTemplateTags(draft.content);
  const used = new Set(deriveVariables(draft.content, draft.contentFormat).map(({ name }) => name));
  return draft.variables.flatMap((variable): Finding[] => {
    const { name } = variable;
    const tag = tags.find((one) => one.variable.name === name);
    const place = tag ? { from: tag.from, to: tag.to } : null;
    if (!used.has(name))
      return [
        {
          kind: "variable",
          severity: "warning",
          fact: `${name} is not used.`,
          advice: "Buyers would fill in a field that changes nothing.",
          place: null,
          variable: name,
          fix: {
            label: "Remove it",
            apply: ({ variables }) => ({ variables: variables.filter((one) => one.name !== name) }),
          },
        },
      ];
    if (hasDetails(variable) || variable.default !== undefined) return [];
    return [
      {
        kind: "variable",
        severity: "note",
        fact: `${name} has no description and no default.`,
        advice: "Buyers see an empty field.",
        place,
        variable: name,
      },
    ];
  });
}

/** From 1. */
export const lineOf = (content: string, offset: number): number =>
  content.slice(0, offset).split("\n").length;
