import { z } from "zod";
import { endpoint, listOf, one } from "../core/endpoint.ts";
import { filter, paging, Timestamp } from "../core/envelope.ts";

const count = z.int().min(0);
const bytes = z.int().min(0).describe("Bytes");
const admin = { who: "admin" } as const;

const state = z.enum(["ok", "warning", "failed"]);

export const services = [
  "database",
  "jobs",
  "emails",
  "files",
  "disk",
  "webhooks",
  "payments",
  "ledger",
] as const;

export const Health = z
  .object({
    state: state.describe("The worst of all checks"),
    version: z.string(),
    environment: z.enum(["test", "production"]),
    checkedAt: Timestamp,
    services: z.array(
      z.object({
        service: z.enum(services),
        state: state.describe("The worst of its checks"),
        value: z.number().nullable().describe("One figure; null if it could not be measured"),
        unit: z.enum([
          "milliseconds",
          "waiting jobs",
          "waiting emails",
          "stored files",
          "free bytes",
          "seconds behind",
          "open payments",
          "problems",
        ]),
        checks: z.array(z.string()).describe("The names of its checks"),
        hours: z
          .array(
            z.object({
              startsAt: Timestamp,
              state: state.nullable().describe("The worst that was found; null: nothing was checked"),
            }),
          )
          .describe("The last 24 hours, the present one last. The service checks itself every ten minutes."),
      }),
    ),
    checks: z
      .array(
        z.object({
          check: z.string(),
          state,
          note: z.string().describe("What was found, and how to fix a problem"),
        }),
      )
      .describe("What `stoa-server doctor` prints"),
  })
  .meta({ id: "Health" });

export const health = endpoint({
  name: "admin.health.get",
  method: "GET",
  path: "/admin/health",
  summary: "Check everything that the service depends on",
  description:
    "Runs the checks of `stoa-server doctor`, which take up to some seconds. Parallel requests share one run. Credentials in addresses are masked.",
  access: admin,
  response: one(Health),
});

export const DatabaseReport = z
  .object({
    version: z.string().describe("Of PostgreSQL"),
    size: bytes,
    disk: z
      .object({ free: bytes, total: bytes })
      .nullable()
      .describe("Of the data folder of this process; null if it cannot be read"),
    connections: z.object({
      used: count.describe("By every client of the server"),
      own: count.describe("By this installation"),
      active: count.describe("Those of this installation that run a statement now"),
      max: count,
    }),
    oldestTransaction: z
      .object({
        startedAt: Timestamp,
        seconds: z.number().min(0),
        state: z.string().describe("active, or idle in transaction"),
        application: z.string(),
      })
      .nullable()
      .describe("null: none is open"),
    tables: z
      .array(
        z.object({
          name: z.string(),
          size: bytes.describe("With indexes, in bytes"),
          rows: count.describe("Estimated by PostgreSQL"),
        }),
      )
      .describe("The 20 largest"),
  })
  .meta({ id: "DatabaseReport" });

export const database = endpoint({
  name: "admin.database.get",
  method: "GET",
  path: "/admin/database",
  summary: "Read sizes, connections and the oldest transaction of the database",
  access: admin,
  response: one(DatabaseReport),
});

export const Setting = z
  .object({
    name: z.string().describe("The environment variable"),
    value: z
      .string()
      .nullable()
      .describe(
        "As the service understands it; null: not set. Secrets, also those in addresses, are masked.",
      ),
    source: z
      .enum(["environment", "file", "default"])
      .describe("environment: the variable is set; file: from a file of the data folder"),
    isSecret: z.boolean().describe("Whether the value is masked"),
  })
  .meta({ id: "Setting" });

export const configuration = endpoint({
  name: "admin.configuration.get",
  method: "GET",
  path: "/admin/configuration",
  summary: "Read the configuration as the service understands it",
  description: "Of the process that answers. The values of secrets are never returned.",
  access: admin,
  response: one(z.object({ settings: z.array(Setting) }).meta({ id: "Configuration" })),
});

export const VersionReport = z
  .object({
    version: z.string().describe("Of the process that answers"),
    previousVersion: z
      .string()
      .nullable()
      .describe("The last other version that ran on this database; null: none did"),
    versions: z
      .array(z.object({ version: z.string(), firstStartedAt: Timestamp, lastStartedAt: Timestamp }))
      .describe("All versions that ran on this database, the last started first"),
    migrations: z
      .array(
        z.object({
          name: z.string(),
          state: z
            .enum(["applied", "pending", "changed", "unknown"])
            .describe(
              "pending: the next start applies it; changed: its file differs from what was applied; unknown: a newer version has applied it",
            ),
          appliedAt: Timestamp.nullable(),
        }),
      )
      .describe("The migrations of this version and of the database, in order"),
    outdatedFunctions: z.array(z.string()).describe("Functions of the database that the next start replaces"),
    releases: z
      .array(
        z.object({
          version: z.string().nullable().describe("null: changes that have no version yet"),
          releasedOn: z.iso.date().nullable(),
          notes: z.string().describe("Markdown"),
        }),
      )
      .describe("Of `CHANGELOG.md`: this version and those after `previousVersion`, newest first"),
  })
  .meta({ id: "VersionReport" });

export const version = endpoint({
  name: "admin.version.get",
  method: "GET",
  path: "/admin/version",
  summary: "Read the version, its migrations and its release notes",
  access: admin,
  response: one(VersionReport),
});

export const Queue = z
  .object({
    name: z.string(),
    schedule: z.string().nullable().describe("A cron expression in UTC; null: runs on request"),
    waiting: count.describe("Jobs that wait for a worker or for their next attempt"),
    running: count,
    failed: count.describe("Jobs without attempts left, of the last week; they can be retried"),
    runs: count.describe("Attempts since the first start"),
    failures: count.describe("Failed attempts since the first start"),
    lastSuccessAt: Timestamp.nullable(),
    lastFailureAt: Timestamp.nullable(),
    lastError: z.string().nullable().describe("Of a job that runs on a schedule, while it is stored"),
    nextRunAt: Timestamp.nullable(),
    isLate: z.boolean().describe("Its last success is older than three periods"),
  })
  .meta({ id: "Queue" });

export const queues = endpoint({
  name: "admin.queues.list",
  method: "GET",
  path: "/admin/queues",
  summary: "List the queues of background jobs and the jobs that run on a schedule",
  access: admin,
  query: z.strictObject(paging),
  response: listOf(Queue),
});

const jobStates = ["waiting", "running", "failed"] as const;

export const runQueue = endpoint({
  name: "admin.queues.run",
  method: "POST",
  path: "/admin/queues/:queue/run",
  summary: "Run a job that runs on a schedule once now",
  description:
    "A worker runs it within seconds, and its schedule stays as it is. A job never runs twice at once: while a run waits or runs, the answer is `INVALID_STATE`, and a scheduled run is skipped.",
  access: admin,
  params: z.object({ queue: z.string() }),
  response: one(z.object({ jobId: z.string() })),
  errors: ["QUEUE_NOT_FOUND", "INVALID_STATE"],
});

export const Job = z
  .object({
    id: z.string(),
    queue: z.string(),
    state: z.enum(jobStates),
    attempts: count.describe("Attempts that have begun"),
    error: z.string().nullable().describe("Of the last failed attempt; email addresses are masked"),
    createdAt: Timestamp,
    nextAttemptAt: Timestamp.nullable(),
    startedAt: Timestamp.nullable().describe("When the running attempt began"),
    failedAt: Timestamp.nullable(),
  })
  .meta({ id: "Job", description: "A background job. Its data is not shown." });

export const jobs = endpoint({
  name: "admin.jobs.list",
  method: "GET",
  path: "/admin/jobs",
  summary: "List background jobs, newest first",
  description: "Completed jobs are not listed. Failed jobs are kept for a week.",
  access: admin,
  query: z.strictObject({
    ...paging,
    state: filter(z.enum(jobStates)),
    queue: z.string().max(100).optional().describe("The name of a queue"),
  }),
  response: listOf(Job),
});

const retried = z.object({ retried: count.describe("Number of jobs that wait again") });

export const retryJob = endpoint({
  name: "admin.jobs.retry",
  method: "POST",
  path: "/admin/jobs/:jobId/retry",
  summary: "Retry a failed job, or run a waiting one at once",
  access: admin,
  params: z.object({ jobId: z.string() }),
  response: one(retried),
  errors: ["JOB_NOT_FOUND", "INVALID_STATE"],
});

export const retryJobs = endpoint({
  name: "admin.jobs.retryAll",
  method: "POST",
  path: "/admin/jobs/retry",
  summary: "Retry all failed jobs",
  access: admin,
  query: z.strictObject({ queue: z.string().max(100).optional().describe("Only those of this queue") }),
  response: one(retried),
});

const emailStatuses = ["waiting", "failed", "refused"] as const;

export const QueuedEmail = z
  .object({
    id: z.string(),
    recipient: z.string().describe("Masked: the first letter and the domain"),
    subject: z.string().nullable().describe("null: the content was deleted"),
    status: z
      .enum(emailStatuses)
      .describe(
        "failed: no attempts are left; refused: the mail server refused it for good, and its content is deleted",
      ),
    attempts: count,
    error: z.string().nullable().describe("Of the last attempt; email addresses are masked"),
    createdAt: Timestamp,
    nextAttemptAt: Timestamp.nullable(),
    refusedAt: Timestamp.nullable(),
  })
  .meta({ id: "QueuedEmail", description: "An email that was not sent, without its text and links." });

export const emails = endpoint({
  name: "admin.emails.list",
  method: "GET",
  path: "/admin/emails",
  summary: "List emails that were not sent, newest first",
  description: "Emails are kept for a week.",
  access: admin,
  query: z.strictObject({ ...paging, status: filter(z.enum(emailStatuses)) }),
  response: listOf(QueuedEmail),
});

export const retryEmail = endpoint({
  name: "admin.emails.retry",
  method: "POST",
  path: "/admin/emails/:emailId/retry",
  summary: "Send an email again now",
  description: "A refused email cannot be sent again, because its content is deleted.",
  access: admin,
  params: z.object({ emailId: z.string() }),
  response: one(retried),
  errors: ["EMAIL_NOT_FOUND", "INVALID_STATE"],
});

export const retryEmails = endpoint({
  name: "admin.emails.retryAll",
  method: "POST",
  path: "/admin/emails/retry",
  summary: "Send all waiting and failed emails again now",
  access: admin,
  response: one(retried),
});

export type Health = z.input<typeof Health>;
export type DatabaseReport = z.input<typeof DatabaseReport>;
export type Setting = z.input<typeof Setting>;
export type VersionReport = z.input<typeof VersionReport>;
export type Queue = z.input<typeof Queue>;
export type Job = z.input<typeof Job>;
export type QueuedEmail = z.input<typeof QueuedEmail>;
