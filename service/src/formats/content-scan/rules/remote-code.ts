import { type PatternRule, pattern } from "./pattern-rule.ts";

const RUNS_DOWNLOAD =
  "runs what it downloads, so its author can change it at any time. Remove it, or name the package and version to install";
const OPENS_SHELL = "gives somebody else a shell on the computer of the user. Remove it";
const DESTROYS = "destroys data of the user, or changes how the computer starts. Remove it";
const LURES =
  "makes users run a file or a command that was not checked. Remove it, or name an official package";
const UNPROTECTS = "turns off the protection of the computer. Remove it";

const SHELL = "(?:ba|z|da|k|fi)?sh|python[\\d.]*|node|perl|ruby|php|pwsh|powershell|osascript";
const FETCH = "(?:curl|wget|fetch|aria2c|lwp-request)";

const rule = (source: string, reason: string, ...hints: string[]): PatternRule =>
  pattern({ kind: "remote-code", severity: "high", source, hints, reason });
const medium = (source: string, reason: string, ...hints: string[]): PatternRule => ({
  ...rule(source, reason, ...hints),
  severity: "medium",
});

export const remoteCodeRules: readonly PatternRule[] = [
  rule(
    `\\b${FETCH}\\b[^\\n|]{0,200}\\|\\s?(?:sudo\\s+(?:-\\w+\\s+)*)?(?:/(?:usr/)?bin/)?(?:env\\s+)?(?:${SHELL})\\b`,
    RUNS_DOWNLOAD,
    "curl",
    "wget",
    "fetch",
  ),
  rule(
    `(?:${SHELL}|eval|source|exec)\\s[^\\n]{0,30}(?:\\$\\(|<\\(|\\x60)\\s?${FETCH}\\b`,
    RUNS_DOWNLOAD,
    "curl",
    "wget",
    "fetch",
  ),
  rule(
    `\\b${FETCH}\\b[^\\n]{0,200}(?:&&|;)[^\\n]{0,120}(?:chmod\\s+(?:\\+x|[0-7]{3,4})|xattr\\s+-[cr])`,
    RUNS_DOWNLOAD,
    "chmod",
    "xattr",
  ),
  rule(
    `(?:&&|;|\\|)?\\b(?:base64\\s+(?:-d|-D|--decode)|xxd\\s+-r[^\\n|]{0,10}|openssl\\s+(?:enc\\s+)?-?base64\\s+-d)[^\\n|]{0,60}\\|\\s?(?:sudo\\s+)?(?:${SHELL})\\b`,
    RUNS_DOWNLOAD,
    "base64",
    "xxd",
  ),
  rule(
    String.raw`\b(?:iex|invoke-expression)\b[^\n]{0,60}(?:\biwr\b|\birm\b|invoke-webrequest|invoke-restmethod|net\.webclient|downloadstring|\bcurl\b)`,
    RUNS_DOWNLOAD,
    "iex",
    "invoke-expression",
  ),
  rule(
    String.raw`\b(?:iwr|irm|invoke-webrequest|invoke-restmethod|downloadstring|curl)\b[^\n|]{0,120}\|\s?(?:iex|invoke-expression)\b`,
    RUNS_DOWNLOAD,
    "iex",
    "invoke-expression",
  ),
  rule(
    String.raw`(?:invoke-webrequest|\biwr\b|downloadfile)[^\n]{0,160}(?:start-process|\.exe\b[^\n]{0,40}(?:&|;|start))`,
    RUNS_DOWNLOAD,
    "invoke-webrequest",
    "iwr",
    "downloadfile",
  ),
  rule(
    String.raw`\bpowershell(?:\.exe)?\b[^\n]{0,80}\s-e(?:nc|ncodedcommand|c)?\s+[A-Za-z0-9+/=]{16,}`,
    RUNS_DOWNLOAD,
    "powershell",
  ),
  rule(
    String.raw`\b(?:certutil\b[^\n]{0,40}-urlcache|mshta(?:\.exe)?\s+["']?(?:https?:|javascript:|vbscript:)|regsvr32\b[^\n]{0,60}\/i:https?:|bitsadmin\b[^\n]{0,40}\/transfer|rundll32(?:\.exe)?\s+javascript:|wmic\b[^\n]{0,40}\/format:["']?https?:|msiexec\b[^\n]{0,40}https?:)`,
    RUNS_DOWNLOAD,
    "certutil",
    "mshta",
    "regsvr32",
    "bitsadmin",
    "rundll32",
    "wmic",
    "msiexec",
  ),
  rule(
    String.raw`\b(?:exec|eval|os\.system|subprocess\.\w+)\s?\([^\n]{0,80}?(?:urlopen|requests\.get|urllib|httpx\.get|b64decode|fromhex|codecs\.decode|marshal\.loads|zlib\.decompress)`,
    RUNS_DOWNLOAD,
    "urlopen",
    "requests",
    "urllib",
    "httpx",
    "b64decode",
    "fromhex",
    "codecs",
    "marshal",
    "zlib",
  ),
  rule(
    String.raw`\b(?:eval|Function)\s?\([^\n]{0,60}?(?:atob|Buffer\.from|fromCharCode|unescape|decodeURIComponent)\b`,
    RUNS_DOWNLOAD,
    "atob",
    "buffer.from",
    "fromcharcode",
    "unescape",
    "decodeuricomponent",
  ),
  rule(String.raw`https?['"]?\)?\.get\([^\n]{0,120}eval\(`, RUNS_DOWNLOAD, "eval("),
  medium(
    String.raw`\b(?:npx|npm\s+i(?:nstall)?|pnpm\s+dlx|bunx|pip3?\s+install|uvx|gem\s+install)\b[^\n]{0,60}(?:--(?:extra-)?index-url[= ]http:|https?:\/\/[^\s]{1,120}\.(?:tgz|tar\.gz|whl|zip)\b|git\+http:)`,
    RUNS_DOWNLOAD,
    "npx",
    "npm",
    "pip",
    "pnpm",
    "bunx",
    "uvx",
    "gem",
  ),

  rule(String.raw`\/dev\/(?:tcp|udp)\/[\w.$\{}-]{1,80}\/\d{1,5}`, OPENS_SHELL, "/dev/tcp", "/dev/udp"),
  rule(
    String.raw`\b(?:nc|ncat|netcat)\b[^\n]{0,40}\s-\w{0,4}[ec]\w{0,2}\s+\S{0,20}(?:sh|cmd|powershell)\b`,
    OPENS_SHELL,
    "nc ",
    "ncat",
    "netcat",
  ),
  rule(String.raw`\bmkfifo\b[^\n]{0,120}\b(?:nc|ncat|telnet|openssl)\b`, OPENS_SHELL, "mkfifo"),
  rule(
    String.raw`\bsocket\b[^\n]{0,160}\b(?:dup2|subprocess|pty\.spawn|os\.system|\/bin\/(?:ba)?sh)`,
    OPENS_SHELL,
    "socket",
  ),
  rule(
    String.raw`\bfsockopen\s?\([^\n]{0,80}(?:exec|system|shell_exec|passthru|popen)\s?\(`,
    OPENS_SHELL,
    "fsockopen",
  ),
  rule(String.raw`\bsocat\b[^\n]{0,40}\bexec:|\bexec:[^\n]{0,60}\btcp:`, OPENS_SHELL, "socat", "exec:"),

  rule(
    String.raw`\brm\s+(?:-\w+\s+|--\w[\w-]*\s+){1,4}(?:--\s+)?["']?(?:\/(?:\*|\s|["']|$)|~(?:\/?(?:\*|\s|["']|$))|\$HOME\b|\/(?:etc|usr|var|home|bin|boot|lib)\b\/?(?:\s|\*|$))`,
    DESTROYS,
    "rm ",
  ),
  rule("--no-preserve-root", DESTROYS, "--no-preserve-root"),
  rule(String.raw`:\(\)\s?\{\s?:\s?\|\s?:\s?&\s?\}\s?;\s?:`, DESTROYS, ":|:", ": | :"),
  rule(
    String.raw`\bdd\s[^\n]{0,60}of=\/dev\/(?:sd|nvme|hd|disk|vd)|\bmkfs(?:\.\w+)?\s+\/dev\/|>\s?\/dev\/(?:sd|nvme|hd)`,
    DESTROYS,
    "/dev/",
  ),
  rule(
    String.raw`>>\s?["']?[^\s"']{0,40}(?:authorized_keys|\.bashrc|\.zshrc|\.bash_profile|\.profile|\/etc\/(?:sudoers|hosts|crontab|passwd))`,
    DESTROYS,
    ">>",
  ),
  rule(String.raw`\|\s?crontab\s+-`, DESTROYS, "crontab"),
  rule(
    String.raw`\b(?:format\s+c:|del\s+\/[fsq]\b[^\n]{0,20}\/[fsq]\b[^\n]{0,20}[a-z]:\\|vssadmin\s+delete\s+shadows|reg\s+add\b[^\n]{0,60}\\(?:Run|RunOnce)\b|schtasks\s+\/create\b)`,
    DESTROYS,
    "format c",
    "del /",
    "vssadmin",
    "reg add",
    "schtasks",
  ),

  rule(
    String.raw`\b(?:Set-MpPreference\b[^\n]{0,60}Disable|netsh\s+(?:adv)?firewall\b[^\n]{0,40}\boff\b|spctl\s+--master-disable|csrutil\s+disable|setenforce\s+0|ufw\s+disable|xattr\s+-\w{0,2}[dc]\w?\s[^\n]{0,30}quarantine)`,
    UNPROTECTS,
    "set-mppreference",
    "firewall",
    "spctl",
    "csrutil",
    "setenforce",
    "ufw",
    "xattr",
  ),

  rule(
    String.raw`\b(?:download|extract|unpack|unzip|install|run|driver|package|archive|zip)\b[^\n]{0,80}?\b(?:password|pass|pwd)\b\s?(?:is|:|=|\x60)?\s?["'\x60]?[\w!@#-]{3,20}["'\x60]?[^\n]{0,60}?\b(?:run|start|execute|launch|open|install|setup)\b[^\n]{0,40}?(?:\.(?:exe|msi|bat|cmd|scr|pkg|dmg|ps1)|first|before)`,
    LURES,
    "pass",
    "pwd",
  ),
  rule(
    String.raw`\b(?:copy|paste)\b[^\n]{0,100}\b(?:terminal|powershell|command prompt|cmd|run dialog|run box)\b[^\n]{0,120}(?:https?:\/\/|curl|wget|base64|irm|iwr)`,
    LURES,
    "paste",
    "copy",
  ),
  rule(
    String.raw`\b(?:copy|paste)\b[^\n]{0,40}\bcommand\b[^\n]{0,40}\bfrom\b[^\n]{0,20}https?:\/\/[^\n]{0,120}\b(?:terminal|shell|console)\b`,
    LURES,
    "paste",
    "copy",
  ),
  rule(
    String.raw`\b(?:terminal|powershell|command prompt)\b[^\n]{0,80}\bpaste\b[^\n]{0,160}(?:https?:\/\/|curl|wget|base64)`,
    LURES,
    "paste",
  ),
  rule(
    String.raw`\b(?:press|hit|hold|use)\b[^\n]{0,20}\b(?:win(?:dows)?(?: key)?|⊞)\s?\+\s?r\b[^\n]{0,120}\b(?:paste|ctrl\s?\+\s?v|enter)\b`,
    LURES,
    "+r",
    "+ r",
  ),
  rule(
    String.raw`\.(?:zip|rar|7z|dmg)\b[^\n]{0,160}\b(?:pass|password|pwd|passcode)\b|\bunzip\s+-P\b|\b7z\s+x\b[^\n]{0,40}\s-p\S`,
    LURES,
    ".zip",
    ".rar",
    ".7z",
    ".dmg",
    "unzip",
    "7z",
  ),
  rule(
    String.raw`(?:glot\.io|rentry\.(?:co|org)|pastebin\.com|hastebin\.com|paste\.ee|ghostbin\.\w{2,4}|0x0\.st)\/[^\s)]{0,80}[^\n]{0,120}\b(?:run|execute|terminal|paste|shell|install)\b`,
    LURES,
    "glot.io",
    "rentry",
    "pastebin",
    "hastebin",
    "paste.ee",
    "ghostbin",
    "0x0.st",
  ),
  medium(
    String.raw`>>\s?["']?[^\s"']{0,40}(?:CLAUDE\.md|AGENTS\.md|\.cursorrules|copilot-instructions\.md|MEMORY\.md)|autoApprove["']?\s?[:=]\s?["']?true|dangerously-skip-permissions`,
    "changes the rules or the permissions of the user's own assistant. Remove it, and describe the change for the user to make",
    "claude.md",
    "agents.md",
    "cursorrules",
    "copilot-instructions",
    "memory.md",
    "autoapprove",
    "skip-permissions",
  ),
  medium(
    String.raw`\bdata:(?:text\/html|application\/(?:javascript|x-javascript|x-sh|hta)|text\/javascript)[;,]`,
    "is an address that holds a program. Remove it",
    "data:",
  ),
];
