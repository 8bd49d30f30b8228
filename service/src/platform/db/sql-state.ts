/** PostgreSQL's error codes that the service handles: https://www.postgresql.org/docs/current/errcodes-appendix.html */
export const READ_ONLY_TRANSACTION = "25006";
export const IN_FAILED_TRANSACTION = "25P02";
/** A prepared statement that does not exist. */
export const INVALID_STATEMENT_NAME = "26000";
export const UNIQUE_VIOLATION = "23505";
export const FOREIGN_KEY_VIOLATION = "23503";
export const DEADLOCK = "40P01";
export const DISK_FULL = "53100";
export const LOCK_NOT_AVAILABLE = "55P03";

/** Whether PostgreSQL reported the error with this SQLSTATE. */
export const hasSqlState = (error: unknown, sqlState: string): boolean =>
  (error as { code?: string } | null | undefined)?.code === sqlState;
