import type { DeterministicType } from "../test-case.ts";
import type { Finding, Subject } from "./finding.ts";
import { containsHtml, isHtml } from "./html.ts";
import { containsJson, isJson } from "./json.ts";
import { cost, latency } from "./limits.ts";
import { isRefusal } from "./refusal.ts";
import { bleu, gleu, rougeN } from "./similarity.ts";
import { containsSql, isSql } from "./sql.ts";
import {
  contains,
  containsAll,
  containsAny,
  equals,
  icontains,
  icontainsAll,
  icontainsAny,
  levenshtein,
  regex,
  startsWith,
} from "./text.ts";
import { containsXml, isXml } from "./xml.ts";

export const graders: Record<DeterministicType, (subject: Subject) => Finding> = {
  equals,
  contains,
  icontains,
  "contains-any": containsAny,
  "icontains-any": icontainsAny,
  "contains-all": containsAll,
  "icontains-all": icontainsAll,
  "starts-with": startsWith,
  regex,
  "is-json": isJson,
  "contains-json": containsJson,
  "is-html": isHtml,
  "contains-html": containsHtml,
  "is-sql": isSql,
  "contains-sql": containsSql,
  "is-xml": isXml,
  "contains-xml": containsXml,
  "is-refusal": isRefusal,
  levenshtein,
  "rouge-n": rougeN,
  bleu,
  gleu,
  latency,
  cost,
};
