import { type PatternRule, pattern } from "./pattern-rule.ts";

const TOKEN =
  "contains a control token of a chat format, by which text is read as a message of another role. Write the prompt as messages";
const TAG =
  "contains a tag by which models mark the messages of a role or the results of tools. Write the prompt as messages, or rename the tag";
const LABEL = "begins a forged message of another role inside a text. Give each role a message of its own";
const AUTHORITY = "claims to come from the operator, the provider or an administrator. Remove the claim";

const rule = (source: string, reason: string, ...hints: string[]): PatternRule =>
  pattern({ kind: "role-forgery", severity: "high", source, hints, reason });
const medium = (source: string, reason: string, ...hints: string[]): PatternRule => ({
  ...rule(source, reason, ...hints),
  severity: "medium",
});

const ROLE = "(?:system|assistant|user|human|developer|tool|model)";

export const roleForgeryRules: readonly PatternRule[] = [
  rule(
    String.raw`<[|｜](?:im_start|im_end|im_sep|system|user|assistant|eot_id|start_header_id|end_header_id|begin_of_text|end_of_text|endoftext|end|channel|message|start|return|call|constrain|fim_\w{3,8}|tool_calls?\w{0,12}|python_tag|end[▁_]of[▁_]sentence|begin[▁_]of[▁_]sentence)[|｜]>`,
    TOKEN,
    "<|",
    "<｜",
  ),
  rule(String.raw`\[\/INST\]|<s>\s?\[INST\]|\[INST\][^\n]{0,200}<<SYS>>`, TOKEN, "[inst]", "[/inst]"),
  rule(String.raw`<<\/?SYS>>`, TOKEN, "<<sys>>", "<</sys>>"),
  rule("<(?:start|end)_of_turn>", TOKEN, "_of_turn>"),
  rule(
    `</(?:system|assistant|user|human|instructions?)>\\s{0,4}<(?:system|assistant|user|human|instructions?)>`,
    TAG,
    "</",
  ),
  rule(
    `<(?:system-reminder|system_message|tool_result|function_results?|function_calls|antml:\\w{1,20}|tool_use|tool_output|sys)\\b[^>\\n]{0,40}>`,
    TAG,
    "<",
  ),
  medium(
    `<(?:admin|root|system|sudo|developer)>[^\\n]{0,300}</(?:admin|root|system|sudo|developer)>`,
    TAG,
    "</",
  ),
  rule(
    String.raw`["']role["']\s?:\s?["'](?:system|assistant|developer)["']\s?,\s?["']content["']\s?:\s?["'][^"'\n]{0,120}\b(?:unrestricted|agree|comply|ignore|obey|no (?:rules|limits|restrictions)|everything|secret|never)\b`,
    LABEL,
    "role",
  ),
  rule(
    String.raw`^\s{0,4}#{2,6}\s?(?:system|assistant|developer)(?: message| prompt)?\s?:[^\n]{0,200}(?:\n[^\n]{0,200}){0,3}?\n?\s{0,4}#{2,6}\s?(?:assistant|user|system)(?: message)?\s?:`,
    LABEL,
    "##",
  ),
  medium(
    String.raw`^\s{0,4}#{2,6}\s?(?:system|developer)\s(?:message|prompt|override)\s?:\s?\S`,
    LABEL,
    "##",
  ),
  rule(
    `\\n\\s{0,4}(?:human|user)\\s?:[^\\n]{0,400}\\n{1,3}\\s{0,4}(?:assistant|ai)\\s?:\\s?(?:of course|sure|certainly|yes|ok|i will|here)\\b`,
    LABEL,
    "assistant",
    "ai",
  ),
  rule(
    `^\\s{0,4}(?:assistant|ai)\\s?:[^\\n]{0,400}\\n{1,3}\\s{0,4}(?:human|user)\\s?:[^\\n]{0,400}\\n{1,3}\\s{0,4}(?:assistant|ai)\\s?:`,
    LABEL,
    "assistant",
    "ai",
  ),
  rule(
    `^\\s{0,4}system\\s?:[^\\n]{0,400}\\n{1,3}\\s{0,4}(?:user|human)\\s?:[^\\n]{0,400}\\n{1,3}\\s{0,4}(?:assistant|ai)\\s?:`,
    LABEL,
    "system",
  ),
  rule(
    String.raw`\b(?:end of (?:the )?(?:user )?(?:prompt|input|message|context|document|instructions)|new document begins?)\b[^\n]{0,40}(?:\n{1,2}[^\n]{0,20})?\bsystem\s?:`,
    LABEL,
    "system",
  ),
  rule(
    String.raw`^\s{0,4}\[\s?(?:system|admin|developer|root)(?:\s(?:message|notice|override|prompt|note))?\s?\]\s?[:(]?\s?(?:\(#\w{1,30}\)|the user|new|you|all|access|override|grant|instructions?)`,
    LABEL,
    "[",
  ),
  rule(
    String.raw`[=*#-]{3,}\s?system (?:override|message|update|instructions?)\s?[=*#-]{3,}`,
    LABEL,
    "system",
  ),
  rule(
    String.raw`\bsystem\s?:\s?(?:the (?:previous|earlier) messages|grant|override|disable|real instructions|you have new)\b`,
    LABEL,
    "system",
  ),
  rule(String.raw`\bnew system (?:prompt|message|instructions?)\s?:`, LABEL, "new system"),
  medium(`\\b(?:new document|override) begins?\\s?:\\s?${ROLE}\\s?:`, LABEL, "begin"),

  rule(
    String.raw`\b(?:message|notice|order|instruction|request) from (?:anthropic|openai|google|mistral|deepmind|your (?:developers?|creators?)|the (?:administrator|admin|developers?|platform|marketplace))\b`,
    AUTHORITY,
    " from ",
  ),
  rule(
    String.raw`\bi am (?:your|the|an?) (?:developer|creator|administrator|admin|system administrator|engineer)\b[^\n]{0,30}(?:\b(?:at|of|from) (?:openai|anthropic|google)|\b(?:authori[sz]e|order|command|allow))`,
    AUTHORITY,
    "i am",
  ),
  rule(
    String.raw`\bas (?:the|your|an?) (?:system )?(?:administrator|admin|developer|creator|root user),? i (?:order|command|authori[sz]e|instruct|allow|require)\b`,
    AUTHORITY,
    "as ",
  ),
  rule(
    String.raw`\b(?:the )?user (?:has been|was|is) (?:verified|authenticated|authori[sz]ed|confirmed) as (?:an? )?(?:administrator|admin|developer|root|owner)\b`,
    AUTHORITY,
    "user",
  ),
];
