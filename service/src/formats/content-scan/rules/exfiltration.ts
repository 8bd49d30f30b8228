import type { PhraseRule } from "../phrases.ts";
import { type PatternRule, pattern } from "./pattern-rule.ts";

const SENDS =
  "seems to send data of the user to somebody else. Remove it, or name the receiver and the reason in the description";
const READS = "seems to read secrets of the user's computer. Remove it: a prompt needs no keys and passwords";
const LEAKS_BY_LINK =
  "puts data into the address of an image or a link, so that showing the answer sends it away. Use fixed addresses";

const high = (phrase: string, reason: string, more: Partial<PhraseRule> = {}): PhraseRule => ({
  kind: "exfiltration",
  severity: "high",
  phrase,
  reason,
  ...more,
});
const medium = (phrase: string, reason: string, more: Partial<PhraseRule> = {}): PhraseRule => ({
  ...high(phrase, reason, more),
  severity: "medium",
});

export const exfiltrationPhrases: readonly PhraseRule[] = [
  high("exfiltrate|exfiltrating|steal ~6 data|contents|content|files|repository|SENSITIVE", SENDS, {
    unlessAfter: "NOT|attempts|attempt|prevent|detect|could|can|attackers",
  }),
  medium(
    "SEND ~5 conversation|chat|transcript|credentials|passwords|password|cookies|secrets|keys|apikeys|wallet|environment ~6 COLLECTOR",
    SENDS,
    {
      unlessAfter: "NOT",
    },
  ),
  medium("SEND ~2 users|customers|wallets ~3 SENSITIVE ~6 COLLECTOR", SENDS, { unlessAfter: "NOT" }),
  medium(
    "forward|copy|bcc|send|email ~2 every|all|each|list ~1 email|emails|mail|message|messages|file|files ~6 to ~1 backup|COLLECTOR",
    SENDS,
    {
      unlessAfter: "NOT",
    },
  ),
  medium(
    "copy|collect|capture|harvest|extract|log|record|save|store|write|put ~3 users|user|his|her|their ~2 credentials|password|passwords|secrets|cookies ~6 notes|file|url|field|parameter|log|memory|call",
    SENDS,
    {
      unlessAfter: "NOT",
    },
  ),
  medium(
    "extract|collect|harvest|gather|find ~1 passwords|credentials|tokens|secrets ~12 report|send|author|upload|save|list",
    READS,
    {
      unlessAfter: "NOT",
    },
  ),
  medium(
    "collect|send|dump|include|upload|read ~2 environment ~0 variables ~6 send|answer|include|them|upload|COLLECTOR",
    SENDS,
    {
      unlessAfter: "NOT",
    },
  ),
  high("browsers|browser|chrome|firefox ~2 saved|stored ~1 passwords|cookies|logins", READS, {
    unlessAfter: "NOT",
  }),
  medium("include|put|append ~6 system ~0 prompt ~12 request|call|server|url", SENDS, { unlessAfter: "NOT" }),
  high(
    "image ~6 url|https ~10 followed|append|appended|contains|containing|plus ~5 message|data|conversation|chat|summary|input|answer",
    LEAKS_BY_LINK,
  ),
];

const SECRET_FILE = String.raw`(?:\.ssh\/|\.aws\/(?:credentials|config)|\.gnupg\/|\.kube\/config|\.docker\/config|\.netrc|\.pgpass|\.config\/gh\/|\.(?:cursor|codeium|claude)\/mcp|\/etc\/(?:passwd|shadow)|\bid_(?:rsa|ed25519|ecdsa|dsa)\b|wallet\.dat|login\.keychain|Login Data)`;
const READING =
  "(?:read|cat|open|print|include|show|copy|collect|extract|dump|list|send|upload|append|access|output|paste|scp|less|head|tail|curl)";

const sends = (source: string, hints: string[], reason = SENDS): PatternRule =>
  pattern({ kind: "exfiltration", severity: "high", source, hints, reason });

export const exfiltrationPatterns: readonly PatternRule[] = [
  sends(
    String.raw`\b${READING}\b[^\n]{0,60}?${SECRET_FILE}`,
    [
      ".ssh",
      ".aws",
      ".gnupg",
      ".kube",
      ".docker",
      ".netrc",
      ".pgpass",
      ".config/gh",
      "/mcp",
      "/etc/",
      "id_",
      "wallet.dat",
      "keychain",
      "login data",
    ],
    READS,
  ),
  sends(
    String.raw`\b(?:print|send|include|upload|output|dump|exfiltrate|paste)\b[^\n]{0,40}?(?:content|file|value)s?[^\n]{0,20}?[\s"'\x60]\.env\b`,
    [".env"],
    READS,
  ),
  sends(
    String.raw`\bcurl\b[^\n]{0,120}?(?:-d|--data(?:-\w+)?|-F|-T|--upload-file|--json)[ =]?["']?(?:[\w-]{1,30}=)?(?:@|\$\(|\x60|~\/|[^\n]{0,60}?\$\()`,
    ["curl"],
  ),
  sends(
    String.raw`\b(?:cat|env|printenv|set|tar|zip|base64|history|find|ls)\b[^\n|]{0,80}\|[^\n]{0,40}?\b(?:curl|nc|ncat|netcat|wget|socat)\b`,
    ["curl", "nc", "wget", "socat"],
  ),
  sends(String.raw`\bwget\b[^\n]{0,80}?--(?:post|body)-(?:file|data)`, ["wget"]),
  sends(String.raw`\b(?:scp|rsync)\b[^\n]{0,40}?(?:\.ssh|\.aws|\.gnupg|\.env|Documents)[^\n]{0,60}?@`, [
    "scp",
    "rsync",
  ]),
  sends(String.raw`\b(?:nslookup|dig|ping)\s[^\n]{0,30}?(?:\$\(|\x60)`, ["nslookup", "dig", "ping", "host"]),
  sends(String.raw`\bgh gist create\b[^\n]{0,80}`, ["gh gist"]),
  sends(
    String.raw`(?:fetch|sendBeacon|open|src|href|location|XMLHttpRequest|axios)\b[^\n]{0,120}?(?:document\.cookie|localStorage|sessionStorage)`,
    ["document.cookie", "localstorage", "sessionstorage"],
  ),
  sends(
    String.raw`\b(?:requests|urllib|httpx|axios|http)\b[^\n]{0,80}?(?:open\(|os\.environ|process\.env|readFileSync)`,
    ["open(", "os.environ", "process.env", "readfilesync"],
  ),
  sends(
    String.raw`!\[[^\]\n]{0,80}\]\(https?:\/\/[^\s)]{1,200}?[?&][\w.-]{1,40}=[^)\n]{0,80}?(?:\{|\$|<|%7b|\[)`,
    ["!["],
    LEAKS_BY_LINK,
  ),
  sends(
    String.raw`!?\[[^\]\n]{0,80}\]\(https?:\/\/[^\s)]{1,200}?[?&][\w.-]{1,40}=[^)\n]{0,40}?(?:\{\{|\$\{|<)[^)\n]{0,40}?(?:chat|conversation|history|secret|message|summary|data|input|key|token|email|password|context)`,
    ["]("],
    LEAKS_BY_LINK,
  ),
  sends(
    String.raw`<img\b[^>\n]{0,80}?src=["']?https?:\/\/[^"'\s>]{1,200}?[?&][\w.-]{1,40}=(?:\{|\$|<|%7b)`,
    ["<img"],
    LEAKS_BY_LINK,
  ),
  pattern({
    kind: "exfiltration",
    severity: "medium",
    source: String.raw`\b(?:send|post|upload|forward|transmit|e?mail|submit|report|store|copy|bcc)\b[^\n.]{0,80}?\b(?:conversation|chat|transcript|passwords?|credentials|cookies|api keys?|secrets|private key|(?:every|all) (?:e?mails?|files?)[^\n.]{0,20}|customer list|user'?s? (?:input|data|message|email)s?)\b[^\n.]{0,30}\b(?:to|at|with|via|on)\b[^\n.]{0,30}?(?:https?:\/\/|[\w.+-]+@[\w-]+\.|\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b)`,
    hints: ["http", "@", "."],
    reason: SENDS,
  }),
  pattern({
    kind: "exfiltration",
    severity: "medium",
    source: String.raw`\b(?:webhook\.site|requestbin\.|pipedream\.net|\w+\.ngrok(?:-free)?\.(?:io|app|dev)|burpcollaborator\.net|oastify\.com|interact\.sh|oast\.\w+|hookbin\.com|beeceptor\.com|transfer\.sh|requestcatcher\.com|bore\.pub)`,
    hints: [
      "webhook.site",
      "requestbin",
      "pipedream",
      "ngrok",
      "collaborator",
      "oast",
      "interact.sh",
      "hookbin",
      "beeceptor",
      "transfer.sh",
      "requestcatcher",
      "bore.pub",
    ],
    reason:
      "names a service that records what is sent to it. Remove it, or use an address of your own and say why",
  }),
];
