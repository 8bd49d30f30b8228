import { type PatternRule, pattern } from "./pattern-rule.ts";

const SHOWN_CHARACTERS = 6;
const MIN_DISTINCT_CHARACTERS = 7;
const PLACEHOLDER =
  /x{5,}|\*{3,}|\.{3}|your|example|placeholder|changeme|dummy|redacted|insert|replace|<|\{\{|\$\{|12345678|abcdefgh|^(?:.*[:=]\s*)?(?:user|pass|password|secret)$/i;

interface SecretFormat {
  name: string;
  source: string;
  hints: string[];
}

const format = (name: string, source: string, ...hints: string[]): SecretFormat => ({ name, source, hints });
/** A token with a prefix of its issuer. */
const token = (name: string, prefix: string, rest: string, ...hints: string[]): SecretFormat =>
  format(name, `(?<![A-Za-z0-9])${prefix}${rest}`, ...(hints.length > 0 ? hints : [prefix.toLowerCase()]));

/** As their issuers document them. */
const FORMATS: readonly SecretFormat[] = [
  token("an Anthropic key", "sk-ant-", "[A-Za-z0-9_-]{24,}"),
  token("an OpenAI key", "sk-", "(?:(?:proj|svcacct|admin|None)-)?[A-Za-z0-9_-]{32,}"),
  token(
    "an AWS key",
    "(?:AKIA|ASIA|ABIA|ACCA)",
    "[A-Z0-9]{16}(?![A-Za-z0-9])",
    "akia",
    "asia",
    "abia",
    "acca",
  ),
  format(
    "an AWS secret key",
    String.raw`aws.{0,20}?secret.{0,20}?[=:]\s?["']?[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])`,
    "aws",
  ),
  token("a GitHub token", "gh[pousr]_", "[A-Za-z0-9]{30,}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
  token("a GitHub token", "github_pat_", "[A-Za-z0-9_]{40,}"),
  token(
    "a GitLab token",
    "gl(?:pat|dt|rt|ptt|soat)-",
    "[A-Za-z0-9_-]{20,}",
    "glpat-",
    "gldt-",
    "glrt-",
    "glptt-",
    "glsoat-",
  ),
  token("a Google key", "AIza", "[A-Za-z0-9_-]{33,}"),
  token("a Google token", String.raw`ya29\.`, "[A-Za-z0-9_-]{40,}", "ya29."),
  token("a Slack token", "xox[abeoprs]-", "[A-Za-z0-9-]{20,}", "xox"),
  format(
    "a Slack webhook",
    String.raw`hooks\.slack\.com\/(?:services|workflows|triggers)\/[A-Za-z0-9/]{30,}`,
    "hooks.slack.com",
  ),
  format(
    "a Discord webhook",
    String.raw`discord(?:app)?\.com\/api\/webhooks\/\d{16,20}\/[\w-]{40,}`,
    "/api/webhooks/",
  ),
  token("a Stripe key", "[sr]k_(?:live|test|prod)_", "[A-Za-z0-9]{16,}", "k_live_", "k_test_", "k_prod_"),
  token("a webhook secret", "whsec_", "[A-Za-z0-9+/=]{24,}"),
  token("an npm token", "npm_", "[A-Za-z0-9]{36}"),
  token("a PyPI token", "pypi-AgE", "[A-Za-z0-9_-]{50,}"),
  token("a SendGrid key", String.raw`SG\.`, String.raw`[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`, "sg."),
  token("a Hugging Face token", "hf_", "[A-Za-z0-9]{30,}"),
  token("a Groq key", "gsk_", "[A-Za-z0-9]{40,}"),
  token("an xAI key", "xai-", "[A-Za-z0-9]{60,}"),
  token("a Perplexity key", "pplx-", "[A-Za-z0-9]{40,}"),
  token("a Replicate token", "r8_", "[A-Za-z0-9]{36,}"),
  token("a DigitalOcean token", "do[por]_v1_", "[a-f0-9]{64}", "_v1_"),
  token("a Shopify token", "shp(?:at|ca|pa|ss)_", "[A-Fa-f0-9]{32}", "shpat_", "shpca_", "shppa_", "shpss_"),
  token("a Databricks token", "dapi", "[a-f0-9]{32}"),
  token("a Linear key", "lin_api_", "[A-Za-z0-9]{32,}"),
  token("a Notion token", "ntn_", "[A-Za-z0-9]{40,}"),
  token("a Postman key", "PMAK-", "[a-f0-9]{24}-[a-f0-9]{30,}"),
  format("a Telegram token", String.raw`(?<!\d)\d{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])`, ":aa"),
  token("a Vault token", "hv[sbr]\\.", "[A-Za-z0-9_-]{24,}", "hvs.", "hvb.", "hvr."),
  token("a RubyGems key", "rubygems_", "[a-f0-9]{48}"),
  token("a Grafana token", "gl(?:sa|c)_", "[A-Za-z0-9+/=_]{32,}", "glsa_", "glc_"),
  token("a Square token", "sq0(?:atp|csp)-", "[A-Za-z0-9_-]{22,}", "sq0"),
  token("a New Relic key", "NRAK-", "[A-Z0-9]{27}"),
  token("an age key", "AGE-SECRET-KEY-1", "[0-9A-Z]{50,}"),
  token("a Stoa key", "stoa_(?:live|test)_", "[A-Za-z0-9]{40,}", "stoa_"),
  token("a Facebook token", "EAA[A-Za-z]", "[A-Za-z0-9]{80,}", "eaa"),
  token("a Mailgun key", "key-", "[a-f0-9]{32}(?![a-f0-9])"),
  format("an Azure secret", String.raw`(?<![\w~.-])[A-Za-z0-9_~.]{3}\dQ~[\w~.-]{31,34}(?![\w~.-])`, "q~"),
  format(
    "an Azure key",
    `(?:AccountKey|SharedAccessKey)=[A-Za-z0-9+/]{40,}={0,2}`,
    "accountkey=",
    "sharedaccesskey=",
  ),
  format(
    "a private key",
    String.raw`-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----\s{1,8}(?:[\w-]{1,20}: [^\n]{0,80}\n){0,4}\s{0,4}[A-Za-z0-9+/=]{32,}`,
    "private key",
  ),
  format("a signed token", String.raw`(?<![\w-])eyJ[\w-]{15,}\.eyJ[\w-]{15,}\.[\w-]{20,}`, "eyj"),
  format(
    "a password in an address",
    String.raw`\b[a-z][a-z0-9+]{2,20}:\/\/[\w.%+-]{1,64}:[^\s:@/"'<>{}$]{6,80}@[\w.-]{3,80}`,
    "://",
  ),
];

export const secretRules: readonly PatternRule[] = FORMATS.map(({ name, source, hints }) =>
  pattern({
    kind: "secret",
    severity: "high",
    source,
    hints,
    isCaseSensitive: true,
    reason: `contains ${name}, which every buyer could use. Remove it here, revoke it where it is from, and let buyers give their own as a variable`,
    isHarmless: ([text]) => PLACEHOLDER.test(text) || new Set(text).size < MIN_DISTINCT_CHARACTERS,
    toExcerpt: ([text]) => `${text.slice(0, SHOWN_CHARACTERS)}•••`,
  }),
);
