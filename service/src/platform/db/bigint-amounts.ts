/** A row whose columns named `…Minor` are bigints. */
export type BigintAmounts<Row> = {
  [Name in keyof Row]: Name extends `${string}Minor`
    ? bigint | (null extends Row[Name] ? null : never)
    : Row[Name];
};

/** The same row as the driver returns it, before toBigintAmounts. */
export type NumberAmounts<Row> = {
  [Name in keyof Row]: Name extends `${string}Minor` ? number | Exclude<Row[Name], bigint> : Row[Name];
};

/** The driver returns amounts as safe integers. */
export function toBigintAmounts<Row extends object>(row: Row): BigintAmounts<Row> {
  const columns = Object.entries(row).map(([name, value]) => [
    name,
    name.endsWith("Minor") && value !== null ? BigInt(value) : value,
  ]);
  return Object.fromEntries(columns) as BigintAmounts<Row>;
}
