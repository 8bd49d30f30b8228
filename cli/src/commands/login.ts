import type { Command } from "commander";
import { openInBrowser } from "../browser.ts";
import { type Cli, connect } from "../cli.ts";
import { action, example } from "../command.ts";
import { CommandError, UsageError } from "../errors.ts";
import { readInput } from "../fields.ts";
import { DEFAULT_SCOPES, logInByBrowser } from "../oauth.ts";
import { type Profile, updateProfiles } from "../profiles.ts";
import { askSecret, isInteractive } from "../prompts.ts";
import { type GlobalOptions, readLoginTarget } from "../settings.ts";

interface LoginOptions {
  scope?: string;
  browser: boolean;
}

export default function define(command: Command): void {
  command
    .option("--scope <permissions>", "the permissions to ask for, with commas", DEFAULT_SCOPES.join(","))
    .option("--no-browser", "only print the address to open")
    .addHelpText(
      "after",
      "\nWith --api-key the login is by an API key, which is asked for, or read from standard input where there is no terminal.",
    )
    .action(action<LoginOptions>(logIn));
  example(command, "stoa login --base-url https://shop.example/v1", "stoa login --api-key < key.txt");
}

async function logIn(cli: Cli, options: LoginOptions & GlobalOptions): Promise<void> {
  const { baseUrl, profileName } = await readLoginTarget(options);
  const profile: Profile =
    options.apiKey === undefined
      ? await byBrowser(cli, options, baseUrl)
      : { baseUrl, apiKey: await readKey(options.apiKey) };
  const token = profile.apiKey ?? profile.oauth?.accessToken ?? "";
  const { email } = await (await connect(baseUrl, token, cli.signal)).account.get();
  await updateProfiles((file) => {
    file.profiles[profileName] = { ...profile, email };
    file.current = profileName;
  });
  cli.output.report(`Logged in to ${new URL(baseUrl).origin} as ${email}. The profile is ${profileName}.`);
}

async function byBrowser(cli: Cli, { scope, browser }: LoginOptions, baseUrl: string): Promise<Profile> {
  const scopes = (scope ?? "").split(",").map((each) => each.trim());
  const oauth = await logInByBrowser({
    baseUrl,
    scopes: scopes.filter((each) => each !== ""),
    signal: cli.signal,
    openPage: (url) => {
      cli.output.report(`Log in on this page:\n${url.href}`);
      if (browser) openInBrowser(url);
    },
  });
  return { baseUrl, oauth };
}

async function readKey(given: string | true): Promise<string> {
  if (given !== true) return given;
  const text = isInteractive()
    ? await askSecret("API key", "Pass the key on standard input: stoa login --api-key < key.txt")
    : await readInput();
  const key = text.trim();
  if (key === "") throw new UsageError("No key was given", "Pass it on standard input, such as `< key.txt`.");
  if (/\s/.test(key)) throw new CommandError("This is more than a key", "Pass the key alone, on one line.");
  return key;
}
