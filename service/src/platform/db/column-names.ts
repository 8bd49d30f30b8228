import {
  CamelCasePlugin,
  type IdentifierNode,
  type PluginTransformQueryArgs,
  type PluginTransformResultArgs,
  PostgresDialect,
  PostgresQueryCompiler,
  type QueryResult,
  type RootOperationNode,
  type UnknownRow,
} from "kysely";

/**
 * Kysely's plugin without its two costs: it copies each query to name its columns, which took half as long as to build it (the compiler below
 * writes the names instead), and it maps each name again for each row.
 */
class ColumnNames extends CamelCasePlugin {
  override transformQuery({ node }: PluginTransformQueryArgs): RootOperationNode {
    return node;
  }

  /** Keys inside JSON columns stay as they are. */
  override async transformResult({ result }: PluginTransformResultArgs): Promise<QueryResult<UnknownRow>> {
    const [first] = result.rows;
    if (!first) return result;
    const columns = Object.keys(first);
    const names = columns.map((column) => this.camelCase(column));
    if (names.every((name, at) => name === columns[at])) return result;
    const empty = Object.fromEntries(names.map((name) => [name, null]));
    return { ...result, rows: result.rows.map((row) => renamed(row, names, empty)) };
  }

  toSql(name: string): string {
    return this.snakeCase(name);
  }
}

/** Fills a copy of `empty`, which has its names already: to add them one by one made each row's object anew. */
function renamed(row: UnknownRow, names: readonly string[], empty: UnknownRow): UnknownRow {
  const named = { ...empty };
  const values = Object.values(row);
  names.forEach((name, at) => {
    named[name] = values[at];
  });
  return named;
}

/** Gives the columns of rows their names in TypeScript: camelCase. */
export const columnNames = new ColumnNames();

class SnakeCaseCompiler extends PostgresQueryCompiler {
  protected override visitIdentifier(node: IdentifierNode): void {
    super.visitIdentifier({ ...node, name: columnNames.toSql(node.name) });
  }
}

/** Writes tables and columns, camelCase in TypeScript, as snake_case (docs/decisions/0054-one-column-spelling.md). */
export class SnakeCaseDialect extends PostgresDialect {
  override createQueryCompiler(): PostgresQueryCompiler {
    return new SnakeCaseCompiler();
  }
}
