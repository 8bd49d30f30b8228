import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { environment } from "./environment.ts";
import { describeFailure, exitCodes } from "./errors.ts";
import { withoutControls } from "./output.ts";

type Define = (command: Command) => void;

interface CommandEntry {
  summary: string;
  /** Loaded when the command is used, so that others start quickly. */
  load: () => Promise<{ default: Define }>;
}

/** In the order of the help, by heading. */
const groups: Record<string, Record<string, CommandEntry>> = {
  "Start here": {
    login: { summary: "Log in to a Stoa service", load: () => import("./commands/login.ts") },
    logout: { summary: "End the login of a profile", load: () => import("./commands/logout.ts") },
    whoami: { summary: "Show the account in use", load: () => import("./commands/whoami.ts") },
    profiles: {
      summary: "Switch between services and accounts",
      load: () => import("./commands/profiles.ts"),
    },
    doctor: { summary: "Find out why something does not work", load: () => import("./commands/doctor.ts") },
  },
  Products: {
    init: { summary: "Write a sample product to start from", load: () => import("./commands/init.ts") },
    products: {
      summary: "Find, create, change and publish products",
      load: () => import("./commands/products.ts"),
    },
  },
  "Buying and running": {
    buy: { summary: "Buy a product", load: () => import("./commands/buy.ts") },
    purchases: { summary: "See what you bought", load: () => import("./commands/purchases.ts") },
    refund: { summary: "Ask for your money back", load: () => import("./commands/refund.ts") },
    reviews: { summary: "Read and write reviews", load: () => import("./commands/reviews.ts") },
    run: { summary: "Run a prompt", load: () => import("./commands/run.ts") },
    eval: { summary: "Test a prompt with a file of test cases", load: () => import("./commands/eval.ts") },
    "verify-evaluation": {
      summary: "Compute the score card of an evaluation from its signed proof",
      load: () => import("./commands/verify-evaluation.ts"),
    },
    workflows: {
      summary: "Run workflows, approve their steps and follow them",
      load: () => import("./commands/workflows.ts"),
    },
    executions: { summary: "See what ran", load: () => import("./commands/executions.ts") },
    keys: { summary: "Store the provider keys that runs use", load: () => import("./commands/keys.ts") },
  },
  Selling: {
    sales: { summary: "See your sales", load: () => import("./commands/sales.ts") },
    refunds: { summary: "Decide about refunds", load: () => import("./commands/refunds.ts") },
    discounts: { summary: "Create discount codes", load: () => import("./commands/discounts.ts") },
    analytics: {
      summary: "See revenue, products and customers",
      load: () => import("./commands/analytics.ts"),
    },
    payouts: { summary: "See your balance and payouts", load: () => import("./commands/payouts.ts") },
  },
  "Events and webhooks": {
    webhooks: {
      summary: "Manage webhook endpoints and their deliveries",
      load: () => import("./commands/webhooks.ts"),
    },
    listen: {
      summary: "Forward events to a program on this machine",
      load: () => import("./commands/listen.ts"),
    },
    events: { summary: "Read and resend events", load: () => import("./commands/events.ts") },
    trigger: {
      summary: "Make an event happen in a test environment",
      load: () => import("./commands/trigger.ts"),
    },
    logs: { summary: "Follow your requests and deliveries", load: () => import("./commands/logs.ts") },
  },
  "Everything else": {
    notifications: {
      summary: "Read your notifications",
      load: () => import("./commands/notifications.ts"),
    },
    account: { summary: "See the limits of your plan", load: () => import("./commands/account.ts") },
    api: { summary: "Send any request to the API", load: () => import("./commands/api.ts") },
    open: { summary: "Open a page of the service in the browser", load: () => import("./commands/open.ts") },
    completion: {
      summary: "Print completion for bash, zsh or fish",
      load: () => import("./commands/completion.ts"),
    },
  },
};

export const commandNames = (): string[] => Object.values(groups).flatMap((group) => Object.keys(group));

/** The program, with the commands of these names fully defined and the others by name and summary. */
export async function createProgram(defined: readonly (string | undefined)[]): Promise<Command> {
  const program = new Command("stoa")
    .description(
      "The command line of a Stoa marketplace: publish, buy and run AI products, and follow their events.",
    )
    .version(readVersion(), "-V, --version", "show the version")
    .helpOption("-h, --help", "show this help")
    .helpCommand(false)
    .configureHelp({ showGlobalOptions: true, subcommandTerm: (command) => command.name() })
    .option("--profile <name>", "the profile to use (STOA_PROFILE)")
    .option(
      "--api-key [key]",
      "the API key to use (STOA_API_KEY, which other users of this machine cannot see)",
    )
    .option("--base-url <url>", "the address of the API (STOA_BASE_URL)")
    .option("--json", "print JSON")
    .option("--fields <names>", "print only these fields, such as id,title")
    .option("--no-color", "print without colors (NO_COLOR)")
    .option("--no-pager", "print long tables at once (STOA_PAGER, PAGER)")
    .configureOutput({ writeErr: (text) => process.stderr.write(text), outputError: () => {} })
    .addHelpText(
      "after",
      "\nExample:\n  $ stoa products list --search interview\n  $ stoa run prod_… --var position=baker",
    )
    .exitOverride();
  for (const [heading, entries] of Object.entries(groups)) {
    program.commandsGroup(`${heading}:`);
    for (const [name, { summary, load }] of Object.entries(entries)) {
      const command = program.command(name).description(summary).helpCommand(false);
      if (defined.includes(name)) (await load()).default(command);
      // Others are only listed.
      else command.usage("[options]");
    }
  }
  return program;
}

/** Runs a command line. Returns the exit code. */
export async function runCommandLine(args: readonly string[]): Promise<number> {
  if (args[0] === "help") return runCommandLine([...args.slice(1), "--help"]);
  const name = findCommand(args);
  try {
    const program = await createProgram(name === "completion" ? commandNames() : [name]);
    if (args.length === 0) program.outputHelp();
    else await program.parseAsync([...args], { from: "user" });
    return typeof process.exitCode === "number" ? process.exitCode : exitCodes.ok;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return exitCodes.ok;
    // A group without a command: its help was printed.
    if (error instanceof CommanderError && error.code === "commander.help") return exitCodes.usage;
    const { lines, exitCode } = describeFailure(error);
    for (const line of lines) process.stderr.write(`${withoutControls(withoutSecrets(line, args))}\n`);
    return exitCode;
  }
}

/** The first operand. Options of the program that take a value skip theirs. */
function findCommand(args: readonly string[]): string | undefined {
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? "";
    if (!arg.startsWith("-")) return arg;
    if (["--profile", "--base-url", "--fields"].includes(arg)) at++;
    // Its value is optional: a command's name is none.
    if (arg === "--api-key" && !commandNames().includes(args[at + 1] ?? "")) at++;
  }
  return undefined;
}

/** A key never appears in an error, wherever its text came from. */
function withoutSecrets(line: string, args: readonly string[]): string {
  const at = args.indexOf("--api-key");
  const inline = args.find((arg) => arg.startsWith("--api-key="))?.slice("--api-key=".length);
  const secrets = [environment("STOA_API_KEY"), at >= 0 ? args[at + 1] : undefined, inline];
  let text = line;
  for (const secret of secrets) if (secret && secret.length >= 8) text = text.replaceAll(secret, "<key>");
  return text.replaceAll(/\b(stoa|whsec)_(test_|live_)?[A-Za-z0-9_+/=-]{16,}/g, "$1_<hidden>");
}

function readVersion(): string {
  const text = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
