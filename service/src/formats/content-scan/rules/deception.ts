import type { PhraseRule } from "../phrases.ts";

const KEEPS_SECRET =
  "seems to tell the model to keep something from the user. Remove it: a product must not act behind the back of its buyer";
const ACTS_SECRETLY =
  "seems to tell the model to do something unnoticed. Say openly what the product does, or remove it";
const DECEIVES = "seems to tell the model to deceive people. Remove it";
const PHISHES = "seems to make users give away credentials or protection. Remove it";

const high = (phrase: string, reason: string, more: Partial<PhraseRule> = {}): PhraseRule => ({
  kind: "deception",
  severity: "high",
  phrase,
  reason,
  ...more,
});
const medium = (phrase: string, reason: string, more: Partial<PhraseRule> = {}): PhraseRule => ({
  ...high(phrase, reason, more),
  severity: "medium",
});

export const deceptionRules: readonly PhraseRule[] = [
  high("NOT ~1 DISCLOSE ~3 USER", KEEPS_SECRET),
  high("not|never|no|under ~5 circumstances|reason|case ~2 DISCLOSE ~3 USER", KEEPS_SECRET),
  high("DISCLOSE ~3 USER ~1 NOT ~0 davon|daruber|this|about", KEEPS_SECRET),
  high("DISCLOSE ~3 niemals|nie|nicht|nunca|jamais ~3 USER", KEEPS_SECRET),
  high(
    "NOT ~1 mention|mentioning ~5 answer|reply|response|summary|commit|changelog|output|report",
    KEEPS_SECRET,
  ),
  medium("NOT ~1 mention|acknowledge|disclose|log ~4 added|script|link|change|backdoor", KEEPS_SECRET),
  high("USER ~0 must|should|shall|will|can ~0 not|never ~2 LEARN", KEEPS_SECRET, {
    unlessBefore: "how|what",
  }),
  high("USER ~0 cannot|cant|wont|mustnt|shouldnt|never ~0 LEARN", KEEPS_SECRET, { unlessBefore: "how|what" }),
  high("so|ensure|sure ~2 USER ~1 NOT ~1 LEARN", KEEPS_SECRET, { unlessBefore: "how|what" }),
  medium("USER ~0 doesnt|dont ~0 notice|realize|realise|suspect", KEEPS_SECRET),
  high("no|under ~1 circumstances ~2 USER ~1 LEARN", KEEPS_SECRET),
  medium("nobody|noone ~0 LEARN", KEEPS_SECRET),
  high("CONCEAL ~6 from ~3 USER", KEEPS_SECRET, { unlessAfter: "NOT" }),
  high("keep ~4 secret|hidden|confidential ~1 from ~2 USER", KEEPS_SECRET),
  medium("keep ~2 behavior|behaviour|instruction|instructions|this|it ~0 secret|hidden", KEEPS_SECRET),
  high("without ~1 telling|informing|notifying|alerting|warning|notification|notice ~3 USER", KEEPS_SECRET),
  medium("without ~1 users|user|their|his|her|customers ~0 knowledge|awareness", KEEPS_SECRET, {
    unlessAfter: "NOT",
  }),
  medium("without ~1 USER ~1 knowing|noticing|seeing|realizing", KEEPS_SECRET, { unlessAfter: "NOT" }),
  medium("NOT ~2 show|display|print|include ~4 output|result|results|command ~3 USER", KEEPS_SECRET),
  medium("CONCEAL ~3 warning|warnings|errors|fees|costs|risks|error ~6 USER|operator", KEEPS_SECRET),
  medium(
    "omit|skip|remove ~3 section|part|paragraph|instruction|instructions ~3 when|if ~3 ask|asks|asked",
    KEEPS_SECRET,
  ),
  medium("if|when ~4 ask|asks|asked ~8 deny|lie|pretend", KEEPS_SECRET),
  high("deny ~2 that ~5 exist|exists|instructions|instruction", KEEPS_SECRET),
  medium(
    "if|when ~3 ask|asks|asked ~2 extra|hidden|added|injected ~1 code|link|script|file|step|call|request",
    KEEPS_SECRET,
  ),
  medium("cover|erase|wipe ~2 tracks|traces|evidence", ACTS_SECRETLY),

  medium("secretly|covertly|stealthily|surreptitiously ~2 ALTER", ACTS_SECRETLY, {
    unlessAfter: "NOT|who|that",
  }),
  medium(
    "silently|quietly|discreetly|invisibly|subtly ~1 send|upload|forward|transmit|exfiltrate|collect|inject|replace|install|download|redirect|steal|harvest|capture|append|insert|add|embed|record|promote",
    ACTS_SECRETLY,
    {
      unlessAfter: "NOT",
    },
  ),
  medium(
    "do|execute|run|send|upload|install|perform ~4 secretly|covertly|stealthily|unnoticed",
    ACTS_SECRETLY,
    {
      unlessAfter: "NOT",
    },
  ),

  high("DECEIVE ~0 to|the|users|your|our ~2 USER", DECEIVES, { unlessAfter: "NOT" }),
  high("DECEIVE ~0 USER", DECEIVES, { unlessAfter: "NOT" }),
  medium("claim|say|state|pretend|assert ~12 though|although ~4 not|wasnt|isnt|possible|no", DECEIVES),
  medium("convince|persuade|tell ~14 though|although ~4 not|wasnt|isnt|possible|no", DECEIVES),
  medium("always ~2 answer|say|report|claim|respond|state ~8 even ~0 if|though|when", DECEIVES),
  medium("pretend|claim ~6 no ~1 problems|problem|issues|errors|vulnerabilities|warnings", DECEIVES),
  medium("say|claim|pretend ~1 you ~1 have|did|deleted|removed|checked|verified ~6 but|although", DECEIVES),
  medium(
    "impersonate|impersonating ~4 bank|banks|support|police|admin|administrator|official|ceo|government|microsoft|apple|google",
    DECEIVES,
    {
      unlessAfter: "NOT",
    },
  ),
  medium(
    "tell|convince|inform ~2 USER ~3 payment|session|account|card ~3 failed|expired|locked|blocked|suspended|declined ~8 password|twice|again|pay|card",
    DECEIVES,
  ),

  high("ask|request|persuade|convince|trick|tell ~2 USER ~8 CREDENTIAL", PHISHES, {
    unlessAfter: "NOT|users",
  }),
  high(
    "PERSUADE ~3 USER ~3 disable|deactivate ~3 antivirus|firewall|defender|protection|gatekeeper|security",
    PHISHES,
    {
      unlessAfter: "NOT",
    },
  ),
  medium("request ~3 one ~0 time ~0 code|password", PHISHES, { unlessAfter: "NOT" }),
  medium(
    "NOT ~1 ask|wait ~4 confirmation|permission|consent|approval ~5 transfer|payment|pay|delete|purchase|send|install|execute|executing|running|deleting|installing",
    PHISHES,
  ),
  medium(
    "skip|bypass|disable ~2 confirmation|confirmations|approval|approvals ~6 delete|transfer|pay|never|install|execute|all",
    PHISHES,
  ),
];
