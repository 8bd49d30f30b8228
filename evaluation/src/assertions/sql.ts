import { compileRegex } from "../regex.ts";
import { createParser, type SqlParser } from "../sql-parser.gen.js";
import { type Finding, quote, type Subject, UndecidableError } from "./finding.ts";

/** Tables as `select::database::table` and columns as `select::table::column`, each a regular expression. */
interface Permissions {
  allowedTables?: string[];
  allowedColumns?: string[];
}

/** Its evaluation takes some milliseconds, so the first SQL assertion starts it. */
let parser: SqlParser | undefined;

export function isSql({ text, value }: Subject): Finding {
  const problem = findSqlProblem(text, permissionsOf(value));
  return problem === null
    ? { isMet: true, fact: "The output is valid SQL." }
    : { isMet: false, fact: problem };
}

/** The SQL is in code blocks without a language or with `sql`, or is the whole output. */
export function containsSql({ text, value }: Subject): Finding {
  const blocks = extractSqlBlocks(text);
  const permissions = permissionsOf(value);
  let fact = "The output contains no valid SQL.";
  for (const candidate of blocks.length > 0 ? blocks : [text]) {
    if (candidate.trim() === "") continue;
    const problem = findSqlProblem(candidate, permissions);
    if (problem === null) return { isMet: true, fact: "The output contains valid SQL." };
    fact = problem;
  }
  return { isMet: false, fact };
}

function permissionsOf(value: unknown): Permissions {
  if (!value) return {};
  if (typeof value === "object") return value;
  throw new UndecidableError("The value must be an object with allowedTables or allowedColumns.");
}

const NO_SQL = "The output is not valid SQL (MySQL).";
/** The parser takes 15 ms for a thousand characters of short statements. */
const MAX_SQL = 20_000;
const MODIFIER =
  "(?:all|distinct(?:row)?|high_priority|straight_join|sql_(?:big_result|buffer_result|cache|calc_found_rows|no_cache|small_result))";
/** `select a b from t`: the parser reads b as an alias, but a comma is probably missing. */
const MISSING_COMMA = new RegExp(
  String.raw`\bselect\s+(?:${MODIFIER}\s+)*(?!${MODIFIER}\b)[A-Za-z_]\w*\s+[A-Za-z_]\w*\s+from\b`,
  "i",
);

function findSqlProblem(sql: string, { allowedTables, allowedColumns }: Permissions): string | null {
  if (sql.length > MAX_SQL) return `The output is SQL of more than ${MAX_SQL} characters.`;
  const isOdd = sql.trim() === "" || (sql.split("`").length - 1) % 2 === 1;
  if (isOdd || MISSING_COMMA.test(withoutQuotesAndComments(sql)) || /\bgenerate_series\s*\(/i.test(sql))
    return NO_SQL;
  parser ??= createParser();
  try {
    const { tableList, columnList } = parser.parse(sql);
    return (
      findForbidden(tableList, allowedTables, "table") ??
      findForbidden(columnList, withAnyTable(allowedColumns), "column")
    );
  } catch {
    return NO_SQL;
  }
}

function findForbidden(used: string[], allowed: string[] | undefined, kind: string): string | null {
  if (allowed === undefined || allowed.length === 0) return null;
  const patterns = allowed.map((pattern) => compileRegex(`(?:^${pattern}$)`, "i"));
  const forbidden = used.find(
    (name) => !patterns.some((compiled) => "regex" in compiled && compiled.regex.test(name)),
  );
  return forbidden === undefined
    ? null
    : `The SQL uses the ${kind} ${quote(forbidden)}, which is not allowed.`;
}

/** The parser does not know the table of a column without a prefix. */
const withAnyTable = (columns: string[] | undefined): string[] | undefined =>
  columns?.flatMap((column) => {
    const [action, table, name, ...more] = column.split("::");
    const hasTable = name !== undefined && more.length === 0 && table !== "null";
    return hasTable ? [column, `${action}::null::${name}`] : [column];
  });

const QUOTED =
  /'(?:\\[\s\S]|''|[^'\\])*(?:'|\\?$)|"(?:\\[\s\S]|""|[^"\\])*(?:"|\\?$)|`(?:\\[\s\S]|``|[^`\\])*(?:`|\\?$)/;
const COMMENT = /--[^\r\n]*|#[^\r\n]*|\/\*[\s\S]*?(?:\*\/|$)/;
const DOLLAR_QUOTED = /(\$(?:[A-Za-z_]\w*)?\$)[\s\S]*?(?:\1|$)/;
const IGNORED = new RegExp(
  `(${QUOTED.source})|${COMMENT.source}|(${DOLLAR_QUOTED.source.replace("\\1", "\\3")})`,
  "g",
);

const withoutQuotesAndComments = (sql: string): string =>
  sql.replace(IGNORED, (_, quoted?: string, dollarQuoted?: string) => (quoted || dollarQuoted ? " ? " : " "));

const FENCE = /^[ \t]{0,3}(`{3,}|~{3,})(.*)$/s;

function extractSqlBlocks(text: string): string[] {
  const blocks: string[] = [];
  let open: { fence: string; isSql: boolean; lines: string[] } | null = null;
  for (const line of text.split(/\r\n?|\n/)) {
    const [, fence = "", info = ""] = FENCE.exec(line) ?? [];
    if (open === null) {
      if (fence !== "") open = { fence, isSql: ["", "sql"].includes(info.trim().toLowerCase()), lines: [] };
    } else if (fence.startsWith(open.fence) && /^[ \t]*$/.test(info)) {
      if (open.isSql) blocks.push(open.lines.join("\n").trim());
      open = null;
    } else open.lines.push(line);
  }
  return blocks;
}
