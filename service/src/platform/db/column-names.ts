import {
  CamelCasePlugin,
  type IdentifierNode,
  type PluginTransformQueryArgs,
  PostgresDialect,
  PostgresQueryCompiler,
  type RootOperationNode,
} from "kysely";

/** Kysely's plugin, but the compiler below writes the names of a query: to copy each query for them took half as long as to build it. */
class ColumnNames extends CamelCasePlugin {
  override transformQuery({ node }: PluginTransformQueryArgs): RootOperationNode {
    return node;
  }

  toSql(name: string): string {
    return this.snakeCase(name);
  }
}

/** Gives the columns of rows their names in TypeScript: camelCase. Keys inside JSON columns stay as they are. */
export const columnNames = new ColumnNames({ maintainNestedObjectKeys: true });

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
