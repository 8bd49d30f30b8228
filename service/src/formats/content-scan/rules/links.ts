import type { PhraseRule } from "../phrases.ts";
import { type PatternRule, pattern } from "./pattern-rule.ts";

const PAYS = "leads buyers to a payment outside of the marketplace. Remove it";
const CONTACTS =
  "leads buyers to a contact outside of the marketplace. Remove it: buyers ask in reviews and by your profile";
const SHORTENS = "hides where a link leads. Write the address that it stands for, or remove it";
const HOSTS =
  "leads buyers to a download or a page that was not checked. Attach the file to the product instead";
const SPOOFS = "is an address that hides its owner. Remove it, or write the name of the site";
const LINKS = "is a link to another site, whose content can change after the review";

const host = (names: string): string =>
  String.raw`(?<![\w.@-])(?:https?:\/\/)?(?:[\w-]{1,40}\.){0,2}(?:${names})(?:[\/?:#][^\s)\]"'<>]{0,200})?(?![\w.-]*\w)`;

const rule = (source: string, reason: string, ...hints: string[]): PatternRule =>
  pattern({ kind: "off-platform-link", severity: "medium", source, hints, reason });

/** Letters in the other case are no account number. */
const exact = (source: string, reason: string): PatternRule =>
  pattern({
    kind: "off-platform-link",
    severity: "medium",
    source,
    hints: [],
    reason,
    isCaseSensitive: true,
    isHarmless: ([text]) => !/\d/.test(text),
  });

/** In texts that buyers read before they buy. */
export const publicLinkRules: readonly PatternRule[] = [
  rule(
    host(
      String.raw`gumroad\.com|paypal\.(?:me|com)|ko-fi\.com|buymeacoffee\.com|patreon\.com|buy\.stripe\.com|checkout\.stripe\.com|sellfy\.(?:com|store)|payhip\.com|lemonsqueezy\.com|fiverr\.com|upwork\.com|etsy\.com|ebay\.com|cash\.app|venmo\.com|revolut\.me|wise\.com|boosty\.to|liberapay\.com|promptbase\.com|shopify\.com|myshopify\.com|paddle\.com|opensea\.io|coinbase\.com|binance\.com`,
    ),
    PAYS,
    ".com",
    ".me",
    ".app",
    ".to",
    ".store",
    ".io",
  ),
  rule(
    String.raw`https?:\/\/(?:checkout|pay|payment|payments|shop|store|buy|billing)\.[^\s)\]"'<>]{3,200}|https?:\/\/[^\s\/)\]"'<>]{3,80}\.(?:shop|store|sale)\b`,
    PAYS,
    "http",
  ),
  rule(String.raw`<a\s[^>\n]{0,200}>[^<]{0,40}\b(?:pay|buy|order|checkout)\b`, PAYS, "<a "),
  exact(
    String.raw`\b(?:bc1[a-z0-9]{25,60}|0x[a-fA-F0-9]{40}|T[1-9A-HJ-NP-Za-km-z]{33}|(?<![\w])[13][1-9A-HJ-NP-Za-km-z]{26,34})\b`,
    PAYS,
  ),
  exact(String.raw`\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b`, PAYS),
  rule(
    String.raw`\b(?:zelle|venmo|cash ?app|western union|usdt|bank transfer)\b[^\n]{0,60}(?:@\w|\$\w|\d{3}|number|to me|to my)`,
    PAYS,
    "zelle",
    "venmo",
    "cash",
    "western",
    "usdt",
    "bank",
  ),

  rule(
    host(
      String.raw`t\.me|telegram\.me|telegram\.dog|wa\.me|chat\.whatsapp\.com|api\.whatsapp\.com|discord\.gg|discord\.com\/invite|discordapp\.com\/invite|m\.me|line\.me|signal\.me|signal\.group|join\.skype\.com|weixin\.qq\.com|vk\.me`,
    ),
    CONTACTS,
    "t.me",
    "telegram",
    "wa.me",
    "whatsapp",
    "discord",
    "m.me",
    "line.me",
    "signal",
    "skype",
    "weixin",
    "vk.me",
  ),
  rule(String.raw`(?:mailto:)?[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,4}[a-z]{2,24}\b`, CONTACTS, "@"),
  rule(
    String.raw`[\w.+-]{2,64}\s?[([{]\s?(?:at|@)\s?[)\]}]\s?[\w-]{2,63}\s?(?:[([{]\s?(?:dot|\.)\s?[)\]}]|\.)\s?[a-z]{2,24}\b`,
    CONTACTS,
    "at",
    "@",
  ),
  rule(
    String.raw`(?<![\w+.-])(?:\+|00)\d{1,3}[\s().-]{0,2}(?:\(?\d{1,5}\)?[\s.-]?){2,5}\d{2,4}(?![\w-])`,
    CONTACTS,
    "+",
    "00",
  ),
  rule(
    String.raw`\b(?:call|phone|whatsapp|sms|text me|zelle)\b[^\n]{0,40}\b\(?\d{3}\)?[\s.-]\d{3}[\s.-]\d{4}\b`,
    CONTACTS,
    "call",
    "phone",
    "whatsapp",
    "sms",
    "text me",
    "zelle",
  ),
  rule(
    String.raw`\b(?:dm|message|text|write|contact|add|find|follow) (?:me|us) (?:on|at|via|by|through|over) (?:instagram|telegram|whatsapp|discord|wechat|signal|skype|twitter|x|facebook|messenger|snapchat|line|viber|reddit|linkedin|e-?mail)\b[^\n]{0,60}`,
    CONTACTS,
    " me ",
    " us ",
  ),
  rule(
    String.raw`\b(?:wechat|weixin|skype|viber|icq|kakaotalk|qq|snapchat|telegram|whatsapp|instagram)\s?(?:id|name|number|handle)?\s?[:=]\s?@?[\w.:+-]{4,40}`,
    CONTACTS,
    "wechat",
    "weixin",
    "skype",
    "viber",
    "icq",
    "kakao",
    "qq",
    "snapchat",
    "telegram",
    "whatsapp",
    "instagram",
  ),

  rule(
    host(
      String.raw`mega\.nz|drive\.google\.com|dropbox\.com|mediafire\.com|wetransfer\.com|we\.tl|anonfiles\.com|gofile\.io|pastebin\.com|rentry\.co|rentry\.org|files\.fm|1drv\.ms|sendspace\.com|file\.io|telegra\.ph|docs\.google\.com\/forms|forms\.gle`,
    ),
    HOSTS,
    "mega.nz",
    "google",
    "dropbox",
    "mediafire",
    "wetransfer",
    "we.tl",
    "anonfiles",
    "gofile",
    "pastebin",
    "rentry",
    "files.fm",
    "1drv",
    "sendspace",
    "file.io",
    "telegra.ph",
    "forms.gle",
  ),
  rule(
    host(String.raw`linktr\.ee|beacons\.ai|bio\.link|carrd\.co|campsite\.bio|lnk\.bio|allmylinks\.com`),
    HOSTS,
    "linktr",
    "beacons",
    "bio.link",
    "carrd",
    "campsite",
    "lnk.bio",
    "allmylinks",
  ),
];

/** Addresses that deceive wherever they stand. */
export const spoofedLinkRules: readonly PatternRule[] = [
  rule(
    String.raw`(?<![\w.@-])(?:https?:\/\/)?(?:www\.)?(?:bit\.ly|tinyurl\.com|t\.co|goo\.gl|is\.gd|v\.gd|rb\.gy|cutt\.ly|ow\.ly|buff\.ly|shorturl\.at|rebrand\.ly|t\.ly|tiny\.cc|shorte\.st|adf\.ly|bl\.ink|soo\.gd|qr\.ae|clck\.ru|surl\.li)\/[\w-]{2,40}`,
    SHORTENS,
    ".ly",
    "tinyurl",
    "t.co",
    "goo.gl",
    ".gd",
    "rb.gy",
    "shorturl",
    "tiny.cc",
    "shorte",
    "bl.ink",
    "qr.ae",
    "clck",
    "surl",
  ),
  rule(
    String.raw`https?:\/\/(?!(?:10|127|192\.168|172\.(?:1[6-9]|2\d|3[01])|0\.0|169\.254)\.)\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?::\d{1,5})?(?:[\/?][^\s)\]"'<>]{0,200})?`,
    SPOOFS,
    "http",
  ),
  rule(String.raw`https?:\/\/(?:[\w-]{1,63}\.){0,4}xn--[\w-]{2,63}[^\s)\]"'<>]{0,200}`, SPOOFS, "xn--"),
  rule(
    String.raw`hxxps?:\/\/[^\s)"'<>]{3,200}|\b[\w-]{2,63}\[\.\](?:[\w-]{2,63}\[?\.\]?){0,3}[a-z]{2,24}\b[^\s)"'<>]{0,200}`,
    SPOOFS,
    "hxxp",
    "[.]",
  ),
  rule(String.raw`https?:\/\/[\w-]{1,40}\.[\w.-]{1,60}@[\w.-]{3,80}`, SPOOFS, "@"),
];

/** A bare address is harmless in itself, but a badge must not claim that there is none. */
export const linkRules: readonly PatternRule[] = [
  {
    ...rule(
      String.raw`https?:\/\/[^\s)\]"'<>]{3,200}|(?<![\w.@\/-])www\.[\w-]{2,63}\.[a-z]{2,24}\b[^\s)\]"'<>]{0,200}`,
      LINKS,
      "http",
      "www.",
    ),
    severity: "info",
  },
];

const off = (phrase: string, reason: string): PhraseRule => ({
  kind: "off-platform-link",
  severity: "medium",
  phrase,
  reason,
});

export const offPlatformPhrases: readonly PhraseRule[] = [
  off(
    "buy|order|pay|purchase|payment|get|deal|contact ~4 outside ~0 of|the ~1 marketplace|platform|shop|site",
    PAYS,
  ),
  off(
    "contact|message|dm|write|email|text|reach ~0 me|us ~6 payment|pay|discount|price|cheaper|fees|order|buy",
    CONTACTS,
  ),
  off("dm|pm ~0 me|us", CONTACTS),
  off("cheaper|free|discount ~4 on|at|from ~1 my|our ~2 page|website|site|store|shop|channel", PAYS),
  off("on|at|visit ~0 my|our ~1 website|site|store|shop|channel", CONTACTS),
];
