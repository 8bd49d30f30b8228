import { type Plan, plans, type Role, roles } from "@stoa/contract";
import { Command, InvalidArgumentError, Option } from "commander";
import { createKeyAsOperator, parsePermissions, revokeKeyAsOperator } from "./accounts/api-keys/keys.ts";
import { hashPassword } from "./accounts/people/password-hash.ts";
import { createUser, findUser } from "./accounts/people/users.ts";
import { startOperatorSession } from "./accounts/sign-in/operator-session.ts";
import { validatePassword } from "./accounts/sign-in/password-rules.ts";
import { readArchiveKeys } from "./backoffice/backup/inspect.ts";
import { restore } from "./backoffice/backup/restore.ts";
import { loadDemo, removeDemo } from "./backoffice/demo/demo.ts";
import { backUpToFile, STDOUT } from "./backoffice/operator/backup-file.ts";
import { type CheckResult, runChecks } from "./backoffice/operator/doctor.ts";
import {
  mustConnectToDatabase,
  type OperatorDatabase,
  openOperatorDatabase,
  readConfigOfExistingDatabase,
  toConnection,
} from "./backoffice/operator/operator-database.ts";
import { exitWithError } from "./backoffice/operator/operator-error.ts";
import {
  type ExportOptions,
  exportProducts,
  formatProblems,
  formatUnpublished,
  importProductFiles,
} from "./backoffice/operator/product-files.ts";
import { reset } from "./backoffice/operator/reset.ts";
import { runServiceProcess } from "./backoffice/operator/service-process.ts";
import { start } from "./backoffice/operator/start.ts";
import { type Base, openBase } from "./base.ts";
import { rebuildSums } from "./commerce/analytics/rebuild.ts";
import { reconcileProvider } from "./commerce/charges/provider-reconciliation.ts";
import { verifyLedger } from "./commerce/ledger/verification.ts";
import { settleReturnedRefund } from "./commerce/refunds/returned-refunds.ts";
import { type Config, readConfig, readPassphrase } from "./core/config/config.ts";
import type { StoredSecrets } from "./core/config/secrets.ts";
import { toId } from "./core/ids.ts";
import { createLog } from "./core/log.ts";
import { formatMoney } from "./core/money/amount.ts";
import { jobKinds } from "./job-kinds.ts";
import { type Rotation, rotateKeyring } from "./keyring.ts";
import { openPool } from "./platform/db/database.ts";
import { migrate } from "./platform/db/migrate.ts";
import { openJobQueue } from "./platform/jobs/job-queue.ts";

const program = new Command("stoa-server").description("Runs and administers a Stoa marketplace.");

interface CreateUserOptions {
  email: string;
  name: string;
  role: Role;
  plan: Plan;
  password?: string;
  json?: boolean;
}

/** Data goes to stdout: as JSON for programs, else a line a field. */
function printData(data: object, { json }: { json?: boolean }): void {
  if (json) console.log(JSON.stringify(data));
  else for (const [name, value] of Object.entries(data)) console.log(`${name}: ${value}`);
}

const withExistingDatabase = <T>(work: (database: OperatorDatabase) => Promise<T>): Promise<T> =>
  withDatabase(readConfigOfExistingDatabase(), work);

/** Of the few commands that may make a database. */
const withNewDatabase = <T>(work: (database: OperatorDatabase) => Promise<T>): Promise<T> =>
  withDatabase(readConfig(), work);

async function withDatabase<T>(config: Config, work: (database: OperatorDatabase) => Promise<T>): Promise<T> {
  const database = await openOperatorDatabase(config);
  try {
    await mustConnectToDatabase(database);
    return await work(database);
  } finally {
    await database.close();
  }
}

const withBase = <T>(work: (base: Base) => Promise<T>): Promise<T> =>
  withExistingDatabase(async (database) => {
    await mustHaveTables(database);
    const base = await openBase({ ...database.config, logLevel: "warn" }, toConnection(database));
    try {
      return await work(base);
    } finally {
      await base.close();
    }
  });

/** `openBase` would make them: in a database that DATABASE_URL names by mistake. */
async function mustHaveTables(database: OperatorDatabase): Promise<void> {
  const pool = openPool({ ...toConnection(database), maxConnections: 1 });
  try {
    const { rows } = await pool.query("select to_regclass('schema_migrations') as found");
    if (rows[0].found === null)
      throw new Error(
        "The database holds no tables of Stoa: set DATABASE_URL or STOA_DATA_DIR to the service's own, or run `stoa-server migrate` first.",
      );
  } finally {
    await pool.end();
  }
}

program.command("start", { isDefault: true }).description("run the service").action(start);
// A part of start, which begins it as often as STOA_PROCESSES says.
program.command("process", { hidden: true }).action(runServiceProcess);

/** Our tables, and those of the job queue. */
async function migrateAll({ target, direct }: OperatorDatabase): Promise<string[]> {
  const pool = openPool({ target: direct ?? target, maxConnections: 2 });
  const log = createLog("warn");
  try {
    const applied = await migrate(pool, new Date(), log);
    await (await openJobQueue(pool, log, jobKinds)).close();
    return applied;
  } finally {
    await pool.end();
  }
}

program
  .command("migrate")
  .description("bring the database to the newest migration")
  .option("--json", "print JSON")
  .action((options) =>
    withNewDatabase(async (database) => {
      const applied = await migrateAll(database);
      printData({ applied: options.json ? applied : applied.join(", ") || "nothing to do" }, options);
    }),
  );

program
  .command("user")
  .description("accounts")
  .command("create")
  .requiredOption("--email <address>", "email address, stored as verified")
  .requiredOption("--name <name>")
  .addOption(new Option("--role <role>").choices(roles).default("user"))
  .addOption(new Option("--plan <plan>").choices(plans).default("free"))
  .option("--password <text>", "password for sign-in, 8 to 200 characters")
  .option("--json", "print JSON")
  .action((options: CreateUserOptions) =>
    withBase(async ({ ctx }) => {
      const { password, ...user } = options;
      if (password !== undefined) validatePassword(password, { ...user, email: user.email.toLowerCase() });
      const passwordHash = password === undefined ? null : await hashPassword(password);
      const id = await createUser(ctx, { ...user, passwordHash });
      printData({ id: toId("usr", id), email: options.email }, options);
    }),
  );

program
  .command("session")
  .description("sessions for users who cannot sign in, and for tests")
  .command("create")
  .requiredOption("--user <id or email>")
  .option("--json", "print JSON")
  .action((options: { user: string; json?: boolean }) =>
    withBase(async ({ ctx }) => {
      const user = await findUser(ctx, options.user);
      printData({ sessionToken: await startOperatorSession(ctx, user.id) }, options);
    }),
  );

const key = program.command("key").description("API keys");
key
  .command("create")
  .requiredOption("--user <id or email>")
  .requiredOption("--name <name>")
  .option("--permissions <list>", "comma-separated permissions, or all", "all")
  .option("--json", "print JSON")
  .action((options: { user: string; name: string; permissions: string; json?: boolean }) =>
    withBase(async ({ ctx }) => {
      const permissions = parsePermissions(options.permissions);
      const user = await findUser(ctx, options.user);
      printData(
        await createKeyAsOperator(ctx, { userId: user.id, name: options.name, permissions }),
        options,
      );
    }),
  );

key
  .command("revoke")
  .description("revoke an API key, for example a leaked one")
  .requiredOption("--key <id or value>", "the id of the key, or the key itself")
  .option("--json", "print JSON")
  .action((options: { key: string; json?: boolean }) =>
    withBase(async ({ ctx }) => printData(await revokeKeyAsOperator(ctx, options.key), options)),
  );

const products = program.command("products").description("export and import a seller's products");
products
  .command("export")
  .description("write all products except deleted ones to stdout or to --output")
  .requiredOption("--seller <id or email>")
  .addOption(new Option("--format <format>").choices(["jsonl", "markdown"]).default("jsonl"))
  .option("--output <path>", "a file, or a new folder for markdown")
  .option("--json", "print JSON")
  .action((options: ExportOptions & { json?: boolean }) =>
    withBase(async ({ ctx }) => {
      const result = await exportProducts(ctx, options);
      if (result) printData(result, options);
    }),
  );

interface ImportOptions {
  seller: string;
  dryRun?: boolean;
  publish?: boolean;
  json?: boolean;
}

products
  .command("import")
  .description("create and update products from a file or folder, all or nothing")
  .argument("<path>", "a .jsonl, .md or .zip file, or a folder of .md files")
  .requiredOption("--seller <id or email>")
  .option("--dry-run", "check only, change nothing")
  .option("--publish", "publish the products that meet the checklist")
  .option("--json", "print JSON")
  .action((path: string, { seller, dryRun = false, publish = false, json }: ImportOptions) =>
    withBase(async ({ ctx }) => {
      const result = await importProductFiles(ctx, seller, path, { dryRun, publish }).catch(printProblems);
      if (!result) return;
      const { products: _, ...counts } = result;
      printData(json ? result : counts, { json: json ?? false });
      printErrors(formatUnpublished(result));
    }),
  );

/** What is wrong goes to stderr, a line each, and fails the command. */
function printErrors(lines: string[]): void {
  for (const line of lines) console.error(line);
  if (lines.length > 0) process.exitCode = 1;
}

function printProblems(error: unknown): null {
  const lines = formatProblems(error);
  if (!lines) throw error;
  printErrors(lines);
  return null;
}

program
  .command("ledger")
  .description("the ledger")
  .command("verify")
  .description(
    "verify that the ledger balances and matches orders, refunds, disputes, payouts, receipts and analytics",
  )
  .option("--json", "print JSON")
  .action((options: { json?: boolean }) =>
    withBase(async ({ ctx }) => {
      const { problems, ...verdict } = await verifyLedger(ctx.db);
      printData(options.json ? { ...verdict, problems } : verdict, options);
      printErrors(problems);
    }),
  );

interface ReconcileOptions {
  since?: Date;
  json?: boolean;
}

program
  .command("payments")
  .description("the payment provider")
  .command("reconcile")
  .description(
    "compare charges, refunds, disputes and payouts at the payment provider with the ledger and list the differences; changes nothing",
  )
  .option(
    "--since <date>",
    "only objects created there since this date, such as 2026-06-01 (default: all)",
    parseDate,
  )
  .option("--json", "print JSON")
  .action(({ since, json }: ReconcileOptions) =>
    withBase(async ({ ctx }) => {
      const { differences, ...compared } = await reconcileProvider(ctx, since ?? new Date(0));
      printData(json ? { ...compared, differences } : compared, { json: json ?? false });
      printErrors(differences);
    }),
  );

function parseDate(text: string): Date {
  const moment = new Date(text);
  if (Number.isNaN(moment.getTime()))
    throw new InvalidArgumentError("It must be a date, such as 2026-06-01 or 2026-06-01T12:00:00Z.");
  return moment;
}

program
  .command("refunds")
  .description("refunds to buyers")
  .command("settle")
  .description("record that a returned refund was paid to the buyer in another way")
  .requiredOption("--refund <id>", "id of the returned refund, as listed by doctor")
  .requiredOption("--reference <text>", "reference of the payment, such as that of a bank transfer")
  .option("--json", "print JSON")
  .action((options: { refund: string; reference: string; json?: boolean }) =>
    withBase(async ({ ctx }) => {
      const { amountMinor, currency, refundId } = await settleReturnedRefund(
        ctx,
        options.refund,
        options.reference,
      );
      printData({ refundId, settled: true, amount: formatMoney(amountMinor, currency) }, options);
    }),
  );

program
  .command("analytics")
  .description("sales figures of sellers")
  .command("rebuild")
  .description("recalculate all sums from the ledger; the service keeps running")
  .option("--json", "print JSON")
  .action((options: { json?: boolean }) =>
    withBase(async ({ ctx }) => printData(await rebuildSums(ctx), options)),
  );

program
  .command("keyring")
  .description("the master keys")
  .command("rotate")
  .description("re-encrypt all secrets with the first key of STOA_MASTER_KEYS; the service keeps running")
  .option("--json", "print JSON")
  .action((options: { json?: boolean }) =>
    withBase(async ({ ctx }) => {
      const { others, ...done } = await rotateKeyring(ctx);
      printData(options.json ? { ...done, others } : done, options);
      if (!options.json) for (const other of others) console.log(formatOtherKey(other));
      if (others.some(({ texts }) => texts > 0)) process.exitCode = 1;
    }),
  );

function formatOtherKey({ key, texts, isInRing }: Rotation["others"][number]): string {
  if (texts === 0) return `${key}: no longer used; you can remove it`;
  return isInRing
    ? `${key}: still holds ${texts}: a process runs whose first key it is, or they were altered. Run this again when none does`
    : `${key}: still holds ${texts}, which cannot be decrypted without it: put it back into the keyring`;
}

const demo = program.command("demo").description("the demo shop (test environment)");
demo
  .command("load")
  .option("--json", "print JSON")
  .action((options) => withBase(async ({ ctx }) => printData(await loadDemo(ctx), options)));
demo
  .command("remove")
  .option("--json", "print JSON")
  .action((options) => withBase(async ({ ctx }) => printData(await removeDemo(ctx), options)));

program
  .command("backup")
  .description("write a backup of the whole installation; the service keeps running")
  .argument("[file]", "a new file, or - for stdout (default: stoa-<time>.tar.gz in this folder)")
  .option("--json", "print JSON")
  .action((file: string | undefined, options: { json?: boolean }) =>
    withExistingDatabase(async (database) => {
      const { problems, ...result } = await backUpToFile(database, file);
      // What goes to stdout then is the archive.
      if (file === STDOUT) console.error(JSON.stringify(result));
      else printData(result, options);
      if (result.keys === "none") console.error(NO_KEYS);
      printErrors(problems);
    }),
  );

const NO_KEYS =
  "The archive holds no keys: keep STOA_MASTER_KEYS and STOA_SESSION_KEYS, or the secrets.json of the data folder, elsewhere, or set STOA_BACKUP_PASSPHRASE.";

program
  .command("restore")
  .description("restore a backup into an empty database")
  .argument("<file>")
  .option("--keys", "only print the settings with the archive's keys")
  .option("--json", "print JSON")
  .action(async (file: string, options: { keys?: boolean; json?: boolean }) => {
    const passphrase = readPassphrase();
    if (options.keys) return printSettings(await readArchiveKeys(file, passphrase), options);
    await withNewDatabase(async (database) => printData(await restore(database, file, passphrase), options));
  });

function printSettings({ masterKeys, sessionKeys }: StoredSecrets, { json }: { json?: boolean }): void {
  const textOf = (keys: { id: string; key: string }[]) => keys.map(({ id, key }) => `${id}:${key}`).join(",");
  const settings = { STOA_MASTER_KEYS: textOf(masterKeys), STOA_SESSION_KEYS: textOf(sessionKeys) };
  if (json) console.log(JSON.stringify(settings));
  else for (const [name, value] of Object.entries(settings)) console.log(`${name}=${value}`);
}

program
  .command("reset")
  .description("empty the database (test environment)")
  .option("--json", "print JSON")
  .action((options) =>
    withNewDatabase(async (database) => {
      await reset(database);
      printData({ reset: true }, options);
    }),
  );

program
  .command("doctor")
  .description("check everything that the service depends on, and its workers")
  .option("--json", "print JSON")
  .action(async (options) => {
    const database = await openOperatorDatabase(readConfigOfExistingDatabase());
    // It says itself what does not answer.
    const findings = await runChecks(database).finally(() => database.close());
    if (options.json) console.log(JSON.stringify(findings));
    else
      for (const { check, note, ...how } of findings) console.log(`${formatStatus(how)} ${check}: ${note}`);
    if (findings.some((finding) => !finding.ok)) process.exitCode = 1;
  });

function formatStatus({ ok, warning }: Pick<CheckResult, "ok" | "warning">): string {
  if (!ok) return "FAIL";
  return warning ? "warn" : "ok  ";
}

program.parseAsync().catch(exitWithError);
