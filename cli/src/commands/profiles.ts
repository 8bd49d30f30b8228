import type { Command } from "commander";
import { action, example } from "../command.ts";
import { UsageError } from "../errors.ts";
import { profilePath, readProfiles, updateProfiles } from "../profiles.ts";

export default function define(command: Command): void {
  command.action(
    action(async (cli) => {
      const { current, profiles } = await readProfiles();
      const rows = Object.entries(profiles).map(([name, { baseUrl, email, apiKey }]) => ({
        name,
        current: name === current,
        email: email ?? null,
        baseUrl,
        login: apiKey ? "API key" : "browser",
      }));
      await cli.output.list(rows, [
        { field: "current", title: "", format: (row) => (row.current ? "*" : "") },
        { field: "name", title: "Profile" },
        { field: "email", title: "Account" },
        { field: "baseUrl", title: "Address" },
        { field: "login", title: "Login" },
      ]);
      if (process.stdout.isTTY) cli.output.report(cli.output.style("dim", profilePath(), process.stderr));
    }),
  );
  example(command, "stoa profiles");
  const use = command
    .command("use")
    .description("Make a profile the one of commands without --profile")
    .argument("<profile>")
    .action(
      action(async (cli, _options, name: string) => {
        await updateProfiles((file) => {
          if (!Object.hasOwn(file.profiles, name))
            throw new UsageError(`There is no profile ${name}`, `Run \`stoa login --profile ${name}\`.`);
          file.current = name;
        });
        cli.output.report(`Commands use the profile ${name} now.`);
      }),
    );
  example(use, "stoa profiles use staging");
}
