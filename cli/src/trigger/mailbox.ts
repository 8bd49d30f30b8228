import type { Stoa } from "@stoa/sdk";
import { type Cli, connect } from "../cli.ts";
import { CommandError } from "../errors.ts";

interface Email {
  to: string;
  text: string;
}

const LINK_TOKEN = /\/auth\/verify#token=([\w-]+)/;

/** Signs in by a magic link from the service's own mailbox, which only a test environment shows. Calls of the client go on after Ctrl-C. */
export async function signInByMailbox(cli: Cli, stoa: Stoa, email: string): Promise<Stoa> {
  const { baseUrl } = await cli.settings();
  const seen = await readLinkTokens(cli, baseUrl, email);
  // An address gets a link each 30 seconds: the error names the time, and the command does not wait.
  await stoa.signIn.magicLink({ email }, { maxRetries: 0 });
  const [token] = (await readLinkTokens(cli, baseUrl, email)).filter((each) => !seen.includes(each));
  if (!token)
    throw new CommandError(
      `The mailbox of the service has no link for ${email}`,
      "The event needs a service without a mail server: STOA_MAIL=dev.",
    );
  cli.signal.throwIfAborted();
  const { sessionToken } = await stoa.signIn.verify({ token });
  return connect(baseUrl, sessionToken, new AbortController().signal);
}

/** Newest first. */
async function readLinkTokens(cli: Cli, baseUrl: string, email: string): Promise<string[]> {
  const url = new URL("/dev/mail", baseUrl);
  const response = await fetch(url, { headers: { accept: "application/json" }, signal: cli.signal });
  if (!response.ok)
    throw new CommandError(
      `${url.href} answered ${response.status}: the event needs a second person, who signs in by the mailbox`,
      "Run the command on the machine of a test service without a mail server (STOA_MAIL=dev).",
    );
  const { data } = (await response.json()) as { data: Email[] };
  return data
    .filter(({ to }) => to.toLowerCase() === email.toLowerCase())
    .flatMap(({ text }) => LINK_TOKEN.exec(text)?.[1] ?? []);
}
