import { environment } from "./environment.ts";
import { LoginError, UsageError } from "./errors.ts";
import { DEFAULT_PROFILE, findProfile, mustBeProfileName, type Profile, readProfiles } from "./profiles.ts";

/** Options of every command. */
export interface GlobalOptions {
  profile?: string;
  /** true: `login --api-key` reads the key from the terminal or from standard input. */
  apiKey?: string | true;
  baseUrl?: string;
  json?: boolean;
  fields?: string;
  color?: boolean;
  pager?: boolean;
}

export const DEFAULT_BASE_URL = "http://127.0.0.1:4000/v1";

export interface Settings {
  profileName: string;
  profile: Profile | undefined;
  baseUrl: string;
  /** A key given by option, environment or profile; undefined: the profile's login in the browser, or none. */
  apiKey: string | undefined;
}

/** Flags win over the environment, which wins over the profile. */
export async function readSettings(options: GlobalOptions): Promise<Settings> {
  const given = typeof options.apiKey === "string" ? options.apiKey : environment("STOA_API_KEY");
  const address = options.baseUrl ?? environment("STOA_BASE_URL");
  const named = options.profile ?? environment("STOA_PROFILE");
  // Nothing of the file is needed: it may be missing or broken.
  if (given && address && !named)
    return {
      profileName: DEFAULT_PROFILE,
      profile: undefined,
      baseUrl: toBaseUrl(address),
      apiKey: given,
    };
  const file = await readProfiles();
  const profileName = named ?? file.current;
  const profile = findProfile(file, profileName);
  if (named && !profile)
    throw new LoginError(`There is no profile ${named}`, `Run \`stoa login --profile ${named}\`.`);
  const baseUrl = toBaseUrl(address ?? profile?.baseUrl ?? DEFAULT_BASE_URL);
  // A key must not reach another service than the one that it was stored for.
  const isOwnService = profile !== undefined && baseUrl === toBaseUrl(profile.baseUrl);
  const stored = isOwnService ? profile : undefined;
  return { profileName, profile: given ? undefined : stored, baseUrl, apiKey: given ?? stored?.apiKey };
}

/** Where a login goes, and under which name it is stored. */
export async function readLoginTarget({
  profile,
  baseUrl,
}: GlobalOptions): Promise<{ baseUrl: string; profileName: string }> {
  const file = await readProfiles();
  const profileName = profile ?? environment("STOA_PROFILE") ?? file.current;
  mustBeProfileName(profileName);
  const address = baseUrl ?? environment("STOA_BASE_URL") ?? findProfile(file, profileName)?.baseUrl;
  return { baseUrl: toBaseUrl(address ?? DEFAULT_BASE_URL), profileName };
}

/** With the path of the API. Without a query, and without a name and password, which would reach logs. */
export function toBaseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (!url || !/^https?:$/.test(url.protocol))
    throw new UsageError(
      `The address ${JSON.stringify(text)} is no http or https URL`,
      `Write it as ${DEFAULT_BASE_URL}, by --base-url or STOA_BASE_URL.`,
    );
  const path = url.pathname.replace(/\/+$/, "");
  return `${url.origin}${path || "/v1"}`;
}
