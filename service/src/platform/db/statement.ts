import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { type RawBuilder, sql } from "kysely";
import { PREPARED_MARK } from "./prepared.ts";

/** `:name`, but not the cast `::name`. */
const PARAMETER = /(?<!:):([a-z]\w*)/gi;
const COMMENT_LINE = /^\s*--.*\n/gm;

/**
 * Reads SQL from a file once and splits it at its `:parameters`. A call builds the same `sql` template as one in
 * TypeScript: a value becomes a parameter, a fragment becomes part of the text.
 */
export const readSql = <Values extends object, Row = unknown>(file: URL) =>
  parseSql<Values, Row>(readText(file));

/** The same as a prepared statement, named after the file. Other fragments make another text, which needs another name: the variant. */
export function readStatement<Values extends object, Row = unknown>(file: URL, variant?: string) {
  const name = basename(fileURLToPath(file), ".sql").replaceAll("-", "_");
  const fullName = variant === undefined ? name : `${name}_${variant}`;
  return parseSql<Values, Row>(`${PREPARED_MARK}${fullName}\n${readText(file)}`);
}

const readText = (file: URL) => readFileSync(file, "utf8").replace(COMMENT_LINE, "");

function parseSql<Values extends object, Row>(text: string): (values: Values) => RawBuilder<Row> {
  const pieces = text.split(PARAMETER);
  const texts = pieces.filter((_, at) => at % 2 === 0);
  const names = pieces.filter((_, at) => at % 2 === 1) as (keyof Values)[];
  const template = Object.assign(texts, { raw: texts });
  return (values) => sql<Row>(template, ...names.map((name) => values[name]));
}
