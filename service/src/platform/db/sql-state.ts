/** PostgreSQL's error codes that the service handles, by their names in https://www.postgresql.org/docs/current/errcodes-appendix.html */
export const NUMERIC_VALUE_OUT_OF_RANGE = "22003";
export const INVALID_PARAMETER_VALUE = "22023";
export const FOREIGN_KEY_VIOLATION = "23503";
export const UNIQUE_VIOLATION = "23505";
export const READ_ONLY_SQL_TRANSACTION = "25006";
export const IN_FAILED_SQL_TRANSACTION = "25P02";
/** A prepared statement that does not exist. */
export const INVALID_SQL_STATEMENT_NAME = "26000";
export const DEADLOCK_DETECTED = "40P01";
export const DISK_FULL = "53100";
export const LOCK_NOT_AVAILABLE = "55P03";

/** Whether PostgreSQL reported the error with this SQLSTATE. */
export const hasSqlState = (error: unknown, sqlState: string): boolean =>
  (error as { code?: string } | null | undefined)?.code === sqlState;
