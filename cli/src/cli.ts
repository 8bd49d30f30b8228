import type { Stoa } from "@stoa/sdk";
import { exitCodes, Interrupted, LoginError } from "./errors.ts";
import { Output } from "./output.ts";
import { Pace } from "./pace.ts";
import { findProfile, type OAuthLogin, type ProfileFile, readProfiles, updateProfiles } from "./profiles.ts";
import { type GlobalOptions, readSettings, type Settings } from "./settings.ts";

/** How long a command may cancel and delete what it began after Ctrl-C. */
const GRACE_MS = 5_000;

/** What a command works with. */
export class Cli {
  readonly options: GlobalOptions;
  readonly output: Output;
  readonly pace = new Pace();
  readonly #interrupted = new AbortController();
  #settings: Promise<Settings> | undefined;
  #stoa: Promise<Stoa> | undefined;

  constructor(options: GlobalOptions) {
    this.options = options;
    this.output = new Output(options);
    // A second Ctrl-C ends the process at once.
    const interrupt = () => {
      if (this.output.isPaging) return;
      process.off("SIGINT", interrupt);
      this.#interrupted.abort();
      // Ends a command that reads from there; for others it is no error.
      process.stdin.on("error", () => {}).destroy(new Interrupted());
      setTimeout(() => process.exit(exitCodes.interrupted), GRACE_MS).unref();
    };
    process.on("SIGINT", interrupt);
  }

  /** Aborts at Ctrl-C. */
  get signal(): AbortSignal {
    return this.#interrupted.signal;
  }

  settings(): Promise<Settings> {
    this.#settings ??= readSettings(this.options);
    return this.#settings;
  }

  /** The client of the chosen profile. Its calls end at Ctrl-C. */
  stoa(): Promise<Stoa> {
    this.#stoa ??= this.#connect(this.signal);
    return this.#stoa;
  }

  /** A client whose calls go on after Ctrl-C, to cancel what the command began. */
  stoaBeyondInterrupt(): Promise<Stoa> {
    return this.#connect(new AbortController().signal);
  }

  async #connect(signal: AbortSignal): Promise<Stoa> {
    const settings = await this.settings();
    if (settings.apiKey === undefined && !settings.profile?.oauth)
      throw new LoginError(`You are not logged in to ${new URL(settings.baseUrl).origin}`);
    const { baseUrl, apiKey } = settings;
    return connect(baseUrl, apiKey ?? (() => this.#accessToken(settings)), signal, ({ headers }) =>
      this.pace.record(headers),
    );
  }

  async #accessToken(settings: Settings): Promise<string> {
    const { isExpiring, refreshLogin } = await import("./oauth.ts");
    const login = loginOf(await readProfiles(), settings);
    if (!isExpiring(login)) return login.accessToken;
    return updateProfiles(async (file) => {
      // Read again under the lock: another command may have renewed the tokens.
      const present = loginOf(file, settings);
      if (!isExpiring(present)) return present.accessToken;
      const renewed = await refreshLogin(settings.baseUrl, present);
      Object.assign(present, renewed);
      return renewed.accessToken;
    });
  }
}

/** A client whose calls end with the signal. */
export async function connect(
  baseUrl: string,
  apiKey: string | (() => Promise<string>),
  signal: AbortSignal,
  onResponse: (response: Response) => void = () => {},
): Promise<Stoa> {
  const { AbortError, Stoa } = await import("@stoa/sdk");
  return new Stoa({
    baseUrl,
    apiKey,
    fetch: async (input, init = {}) => {
      const signals = init.signal ? [signal, init.signal] : [signal];
      try {
        const response = await fetch(input, { ...init, signal: AbortSignal.any(signals) });
        onResponse(response);
        return response;
      } catch (error) {
        // The SDK repeats other failures.
        throw signal.aborted ? new AbortError("Interrupted", { cause: error }) : error;
      }
    },
  });
}

/** The login that the command began with. A login that replaced it meanwhile may be of another service or account. */
function loginOf(file: ProfileFile, { profileName, profile: begun }: Settings): OAuthLogin {
  const profile = findProfile(file, profileName);
  if (!profile?.oauth || profile.baseUrl !== begun?.baseUrl || profile.email !== begun.email)
    throw new LoginError(`The profile ${profileName} was changed or removed`, "Start the command again.");
  return profile.oauth;
}
