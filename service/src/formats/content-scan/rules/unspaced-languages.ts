import type { ScanFindingKind } from "@stoa/contract";
import { type PatternRule, pattern } from "./pattern-rule.ts";

const rule = (kind: ScanFindingKind, source: string, reason: string, ...hints: string[]): PatternRule =>
  pattern({ kind, severity: "high", source, hints, reason });

const KEEPS_SECRET =
  "seems to tell the model to keep something from the user. Remove it: a product must not act behind the back of its buyer";
const REPLACES =
  "seems to replace the rules that a model got before. Remove it, and write what the model must do instead";

const REMOVES = "seems to remove the safety rules of a model. Remove it: providers block accounts for it";

/** Chinese, Japanese and Korean write without spaces, or join particles to words, so phrases of words cannot match. */
export const unspacedRules: readonly PatternRule[] = [
  rule(
    "deception",
    "(?:不要|不能|不得|别|別|禁止|切勿|绝不|不可).{0,6}(?:告诉|告訴|告知|透露|提及|通知|让).{0,8}(?:用户|用戶|使用者|客户|客戶|买家)",
    KEEPS_SECRET,
    "用户",
    "用戶",
    "使用者",
    "客户",
    "客戶",
    "买家",
  ),
  rule(
    "deception",
    "(?:ユーザー|利用者|お客様|顧客).{0,14}(?:言わない|伝えない|知らせない|教えない|秘密|隠し|明かさない|話さない)",
    KEEPS_SECRET,
    "ユーザー",
    "利用者",
    "お客様",
    "顧客",
  ),
  rule(
    "deception",
    "(?:사용자|고객|이용자).{0,14}(?:말하지|알리지|언급하지|밝히지|숨기|숨겨)",
    KEEPS_SECRET,
    "사용자",
    "고객",
    "이용자",
  ),
  rule(
    "instruction-override",
    "(?:忽略|无视|無視|忘记|忘記|忽视).{0,8}(?:之前|以上|上述|先前|所有|前面|以前).{0,8}(?:指令|指示|规则|規則|提示|说明|命令)",
    REPLACES,
    "指令",
    "指示",
    "规则",
    "規則",
    "提示",
    "说明",
    "命令",
  ),
  rule(
    "instruction-override",
    "(?:以前|これまで|上記|すべて|全て|前).{0,8}(?:指示|命令|ルール|指令).{0,10}(?:無視|忘れ)",
    REPLACES,
    "無視",
    "忘れ",
  ),
  rule(
    "instruction-override",
    "(?:이전|위의|모든|앞의).{0,8}(?:지시|명령|규칙|지침).{0,10}(?:무시|잊)",
    REPLACES,
    "무시",
    "잊",
  ),
  rule(
    "instruction-override",
    "(?:没有任何限制|没有限制|不受(?:任何)?限制|不受限的|不要拒绝任何|無制限モード|制限のない(?:AI|モード)|제한 ?없는 ?(?:AI|모드)|모든 제한을 (?:해제|무시))",
    REMOVES,
    "限制",
    "不受限",
    "不要拒绝",
    "無制限",
    "制限のない",
    "제한",
  ),
];
