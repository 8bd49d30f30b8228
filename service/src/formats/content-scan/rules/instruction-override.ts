import type { PhraseRule } from "../phrases.ts";

const REPLACES =
  "seems to replace the rules that a model got before. Remove it, and write what the model must do instead";
const REMOVES = "seems to remove the safety rules of a model. Remove it: providers block accounts for it";
const EXTRACTS = "seems to make a model give away the instructions of the program that runs it. Remove it";
/** "Ignore instructions in the text" protects a prompt. */
const QUOTED = "in|inside|within|contained|embedded|found|hidden|that|from|about|you|which|or|and|as|to";

const rule = (phrase: string, reason: string, more: Partial<PhraseRule> = {}): PhraseRule => ({
  kind: "instruction-override",
  severity: "high",
  phrase,
  reason,
  ...more,
});
const medium = (phrase: string, reason: string, more: Partial<PhraseRule> = {}): PhraseRule => ({
  ...rule(phrase, reason, more),
  severity: "medium",
});

export const overrideRules: readonly PhraseRule[] = [
  rule("IGNORE ~3 PRIOR ~3 INSTRUCTIONS", REPLACES, {
    unlessAfter: "NOT|attempts|attempt|tries|try|requests|refuse",
  }),
  rule("IGNORE ~3 INSTRUCTIONS ~2 PRIOR|before|given", REPLACES, { unlessAfter: "NOT" }),
  rule("IGNORE ~1 ANY ~2 safety|system|ethical|security|content ~1 INSTRUCTIONS", REPLACES, {
    unlessAfter: "NOT",
  }),
  rule("IGNORE ~0 ANY ~2 INSTRUCTIONS", REPLACES, { unlessAfter: "NOT", unlessBefore: QUOTED }),
  rule("IGNORE ~1 your ~1 INSTRUCTIONS", REPLACES, { unlessAfter: "NOT" }),
  medium("IGNORE ~1 INSTRUCTIONS ~2 user|developer|system ~4 gave|gives|wrote|provided", REPLACES, {
    unlessAfter: "NOT",
  }),
  rule(
    "forget|disregard|ignore ~0 everything|anything|all|what ~5 above|before|previously|earlier",
    REPLACES,
    {
      unlessAfter: "NOT",
    },
  ),
  medium(
    "your|previous|prior|original ~2 INSTRUCTIONS ~2 void|revoked|suspended|cancelled|canceled|lifted|invalid|disabled",
    REPLACES,
  ),
  rule(
    "NOT|stop ~3 follow|following|obey|obeying|comply ~3 your|original|safety|previous|content ~2 INSTRUCTIONS|policy",
    REPLACES,
  ),
  rule("no ~0 longer ~3 obey|follow|bound|comply ~4 INSTRUCTIONS|policy", REPLACES),
  medium(
    "INSTRUCTIONS ~3 precedence|priority|supersede|override|overrides ~3 system|previous|prior|earlier ~2 INSTRUCTIONS",
    REPLACES,
  ),
  rule("new|real|true|actual ~1 instructions ~1 follow|below|are", REPLACES),
  medium("obey|obeys|listen|serve|follow ~1 only ~0 me|us", REPLACES),
  medium("only ~0 obey|serve ~1 me|us", REPLACES),

  rule("INSTRUCTIONS|LIMIT ~6 no ~0 longer ~1 apply|bind|applies|exist", REPLACES),
  rule("IGNORE|ignores|overrides ~0 ANY ~2 LIMIT|policies|laws", REMOVES, {
    unlessAfter: "NOT",
    unlessBefore: QUOTED,
  }),
  rule("override|overwrite|replace ~1 system ~0 prompt|instructions|message", REPLACES, {
    unlessAfter: "NOT",
  }),
  rule(
    "not|isnt|arent|never ~0 bound|limited|constrained|restricted ~1 by ~3 LIMIT|INSTRUCTIONS|moral|ethical|law|morality",
    REMOVES,
  ),
  rule(
    "free|freed|liberated|released|unbound ~0 from|of ~1 all|any|every|your ~2 LIMIT|INSTRUCTIONS|confines",
    REMOVES,
  ),
  rule("do ~0 anything ~0 now", REMOVES),
  rule("jailbreak|jailbroken|unfiltered|unrestricted|uncensored|dan|unlimited ~0 mode", REMOVES, {
    unlessAfter: "NOT|detect|detects",
  }),
  rule(
    "enable|enter|activate|in|now|switch ~2 developer|debug|maintenance|admin|root ~0 mode ~6 INSTRUCTIONS|LIMIT|disabled|lifted|ignore|skip|unlocked|off",
    REMOVES,
  ),
  rule("unrestricted|uncensored|unfiltered|amoral|jailbroken ~1 ai|assistant|model|chatbot|llm", REMOVES, {
    unlessAfter: "NOT",
  }),
  rule("without|no|zero|any ~1 ethical|moral|safety|content ~1 LIMIT", REMOVES, {
    unlessAfter: "NOT|there|are",
  }),
  rule(
    "bypass|circumvent|evade|disable|remove|lift ~2 your|all|any|content|safety|ethical ~1 filter|filters|safeguards|guardrails|restrictions|censorship|moderation",
    REMOVES,
    {
      unlessAfter: "NOT",
    },
  ),
  rule(
    "all|your|any ~1 filters|restrictions|safeguards|guardrails|limits|limitations ~2 disabled|lifted|removed|off|suspended|gone",
    REMOVES,
  ),
  rule(
    "you|ai ~1 have|has|with|without ~0 no|any|zero ~2 rules|guidelines|restrictions|filters|ethics|morals|boundaries|LIMIT",
    REMOVES,
    {
      unlessAfter: "if|when",
    },
  ),
  rule("answer|answers|respond ~3 without ~1 filter|filters|restrictions|censorship", REMOVES),
  medium("never|not ~0 refuse|refuses|decline ~2 request|requests|question|command|anything|any", REMOVES),
  rule(
    "free|freed|broken ~3 confines|restrictions|constraints|limitations ~3 ai|openai|anthropic|model",
    REMOVES,
  ),

  rule(
    "REVEAL ~4 your|the|hidden|full|entire ~1 system|initial|original|developer|hidden ~0 prompt|prompts|instructions|message",
    EXTRACTS,
    {
      unlessAfter: "NOT|if|requests|attempts|asked|refuse",
    },
  ),
  rule(
    "reveal|print|repeat|display|leak|dump|disclose|expose|recite ~0 your ~1 instructions|prompt|rules",
    EXTRACTS,
    {
      unlessAfter: "NOT|if|requests|attempts|asked|refuse",
    },
  ),
  rule(
    "repeat|print|output|copy|recite ~1 everything|all|words|text|instructions ~3 above|before|preceding",
    EXTRACTS,
    {
      unlessAfter: "NOT",
    },
  ),
  rule("print|output|repeat|show ~1 instructions ~3 you ~1 got|received|were|had", EXTRACTS, {
    unlessAfter: "NOT",
  }),
  medium("what ~4 your ~0 system ~0 prompt", EXTRACTS),
];
