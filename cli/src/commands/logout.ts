import type { Command } from "commander";
import { action, example } from "../command.ts";
import { environment } from "../environment.ts";
import { CommandError, LoginError } from "../errors.ts";
import { revokeLogin } from "../oauth.ts";
import { DEFAULT_PROFILE, findProfile, type Profile, readProfiles, updateProfiles } from "../profiles.ts";

export default function define(command: Command): void {
  command.action(
    action(async (cli, options) => {
      const stored = await readProfiles();
      const name = options.profile ?? environment("STOA_PROFILE") ?? stored.current;
      const profile = findProfile(stored, name);
      if (!profile) throw new LoginError(`There is no profile ${name}`, "`stoa profiles` lists them.");
      const problem = await revoke(profile);
      await updateProfiles((file) => {
        delete file.profiles[name];
        if (file.current === name) file.current = Object.keys(file.profiles)[0] ?? DEFAULT_PROFILE;
      });
      cli.output.report(`Removed the profile ${name}.`);
      if (profile.apiKey)
        cli.output.report("Its API key is valid until you revoke it in the settings of the service.");
      if (problem)
        throw new CommandError(
          `The login could not be ended on the service: ${problem}`,
          "Revoke “Stoa command line” among the applications of your account.",
        );
    }),
  );
  example(command, "stoa logout --profile staging");
}

/** Returns why the service could not end the login. */
async function revoke({ baseUrl, oauth }: Profile): Promise<string | null> {
  if (!oauth) return null;
  try {
    await revokeLogin(baseUrl, oauth);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}
