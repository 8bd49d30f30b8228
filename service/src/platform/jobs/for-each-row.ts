/** Does a job's work on one row after the other. What comes in the way of one is told, and keeps no other from its turn. */
export async function forEachRow<Row>(
  rows: Row[],
  work: (row: Row) => Promise<unknown>,
  tell: (row: Row, error: unknown) => void,
): Promise<void> {
  for (const row of rows) {
    try {
      await work(row);
    } catch (error) {
      tell(row, error);
    }
  }
}
