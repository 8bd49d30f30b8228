/** A row whose amounts are bigints: every column that is named `…Minor`. */
export type BigintAmounts<Row> = {
  [Name in keyof Row]: Name extends `${string}Minor`
    ? bigint | (null extends Row[Name] ? null : never)
    : Row[Name];
};

/** A row as the driver hands it out, of one whose amounts are bigints: what a query is cast to before `exact`. */
export type NumberAmounts<Row> = {
  [Name in keyof Row]: Name extends `${string}Minor` ? number | Exclude<Row[Name], bigint> : Row[Name];
};

/** Amounts as they are reckoned with: the driver hands them out as safe integers, of which none has a fraction. */
export function toBigintAmounts<Row extends object>(row: Row): BigintAmounts<Row> {
  const columns = Object.entries(row).map(([name, value]) => [
    name,
    name.endsWith("Minor") && value !== null ? BigInt(value) : value,
  ]);
  return Object.fromEntries(columns) as BigintAmounts<Row>;
}
