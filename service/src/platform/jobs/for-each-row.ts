/** Runs a job's work on one row after the other. Reports errors and continues with the next row. */
export async function forEachRow<Row>(
  rows: Row[],
  work: (row: Row) => Promise<unknown>,
  report: (row: Row, error: unknown) => void,
): Promise<void> {
  for (const row of rows) {
    try {
      await work(row);
    } catch (error) {
      report(row, error);
    }
  }
}
