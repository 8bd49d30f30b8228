import { type DestinationStream, type Logger, pino } from "pino";

/** Drops `detail` and similar fields, in which PostgreSQL quotes the refused row with users' texts. */
function withoutValues(error: unknown): unknown {
  // Libraries throw objects that are not Errors, and pg-boss emits copies of its errors.
  if (typeof (error as Error | null)?.message !== "string") return { message: String(error) };
  const { name, message, stack, cause } = error as Error;
  const { code } = error as { code?: unknown };
  return {
    name,
    message,
    stack,
    ...(code !== undefined && { code }),
    ...(cause !== undefined && { cause: withoutValues(cause) }),
  };
}

/** A write costs more than the line in it, so lines are buffered briefly. */
const WRITE_AT_BYTES = 8 * 1024;
const WRITE_EVERY_MS = 100;

const stderr = () =>
  pino.destination({ fd: 2, sync: false, minLength: WRITE_AT_BYTES, periodicFlush: WRITE_EVERY_MS });

export const createLog = (level: string, destination: DestinationStream = stderr()): Logger =>
  pino(
    { level, timestamp: pino.stdTimeFunctions.isoTime, base: null, serializers: { err: withoutValues } },
    destination,
  );
