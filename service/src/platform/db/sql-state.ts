export const UNIQUE_VIOLATION = "23505";
export const FOREIGN_KEY_VIOLATION = "23503";
export const DEADLOCK = "40P01";

/** Whether PostgreSQL reported the error with this SQLSTATE. */
export const hasSqlState = (error: unknown, sqlState: string): boolean =>
  (error as { code?: string } | null | undefined)?.code === sqlState;
