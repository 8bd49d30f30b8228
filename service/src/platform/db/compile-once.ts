import type { Compilable, CompiledQuery, QueryResult } from "kysely";
import type { Queries } from "./database.ts";

/** In place of a value while the text is compiled. */
class StandIn {
  readonly path: Path;
  constructor(path: Path) {
    this.path = path;
  }
}

/** Names of members, and indexes of rows. */
type Path = readonly string[];

interface Compiled<Row> {
  query: CompiledQuery<Row>;
  /** In the order of its parameters: a path into the values, or a constant of the query. */
  parameters: (StandIn | { constant: unknown })[];
}

/**
 * A Kysely query that is built and compiled once, because that takes longer than to send it. `build` gets stand-ins for the values, so
 * that its text may depend on which members are there and on the number of rows in an array of objects, but on no value.
 */
export function compileOnce<Values extends object, Row>(
  build: (db: Queries, values: Values) => Compilable<Row>,
): (db: Queries, values: Values) => Promise<QueryResult<Row>> {
  const byShape = new Map<string, Compiled<Row>>();
  return (db, values) => {
    const shape = shapeOf(values);
    let compiled = byShape.get(shape);
    if (!compiled) {
      compiled = toCompiled(build(db, standInsFor(values, []) as Values).compile());
      byShape.set(shape, compiled);
    }
    const parameters = compiled.parameters.map((parameter) =>
      parameter instanceof StandIn ? valueAt(values, parameter.path) : parameter.constant,
    );
    return db.executeQuery<Row>({ ...compiled.query, parameters });
  };
}

const toCompiled = <Row>(query: CompiledQuery<Row>): Compiled<Row> => ({
  query,
  parameters: query.parameters.map((parameter) =>
    parameter instanceof StandIn ? parameter : { constant: parameter },
  ),
});

const isRows = (value: unknown): value is object[] =>
  Array.isArray(value) && typeof value[0] === "object" && value[0] !== null;

/** Kysely leaves undefined members out. */
const definedEntries = (values: object): [string, unknown][] =>
  Object.entries(values).filter(([, value]) => value !== undefined);

const shapeOf = (values: object): string =>
  definedEntries(values)
    .map(([name, value]) => (isRows(value) ? `${name}[${value.map(shapeOf).join(";")}]` : name))
    .join();

const standInsFor = (values: object, path: Path): object =>
  Object.fromEntries(
    definedEntries(values).map(([name, value]) => [name, standInFor(value, [...path, name])]),
  );

const standInFor = (value: unknown, path: Path): unknown =>
  isRows(value) ? value.map((row, at) => standInsFor(row, [...path, String(at)])) : new StandIn(path);

function valueAt(values: object, path: Path): unknown {
  let value: unknown = values;
  for (const name of path) value = (value as Record<string, unknown>)[name];
  return value;
}
