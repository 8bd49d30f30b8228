import { SMTPServer } from "smtp-server";
import { freePort } from "./free-port.ts";
import { until } from "./until.ts";

export interface ReceivedEmail {
  from: string;
  recipients: string[];
  /** The message with its headers. */
  raw: string;
  /** The unfolded value of a header. */
  header(name: string): string | undefined;
  /** The decoded parts. */
  text: string;
  html: string;
}

interface MailServerOptions {
  port?: number;
  account?: { user: string; password: string };
  tls?: "none" | "implicit";
  /** Replies with code and text for a refused sender, recipient or email. */
  refuse?: { sender?: string; recipient?: string; email?: string };
}

export interface MailServer {
  url: string;
  port: number;
  emails: ReceivedEmail[];
  refuse: NonNullable<MailServerOptions["refuse"]>;
  /** Resolves when `count` emails have arrived. */
  received(count: number): Promise<ReceivedEmail[]>;
  close(): Promise<void>;
}

const refusal = (reply: string) =>
  Object.assign(new Error(reply.slice(4)), { responseCode: Number(reply.slice(0, 3)) });

/** A real mail server on this machine, with configurable faults. */
export async function startMailServer(options: MailServerOptions = {}): Promise<MailServer> {
  const emails: ReceivedEmail[] = [];
  const refuse = options.refuse ?? {};
  const server = new SMTPServer({
    secure: options.tls === "implicit",
    authOptional: options.account === undefined,
    hideSTARTTLS: true,
    disabledCommands: ["STARTTLS"],
    closeTimeout: 200,
    logger: false,
    onAuth: ({ username, password }, _session, done) =>
      username === options.account?.user && password === options.account?.password
        ? done(null, { user: username })
        : done(refusal("535 5.7.8 who are you")),
    onMailFrom: (_address, _session, done) => done(refuse.sender ? refusal(refuse.sender) : null),
    onRcptTo: (_address, _session, done) => done(refuse.recipient ? refusal(refuse.recipient) : null),
    onData: (stream, { envelope }, done) => {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        if (refuse.email) return done(refusal(refuse.email));
        const from = envelope.mailFrom ? envelope.mailFrom.address : "";
        const recipients = envelope.rcptTo.map(({ address }) => address);
        emails.push({ from, recipients, ...parse(Buffer.concat(chunks).toString()) });
        done();
      });
    },
  });
  server.on("error", () => {});
  const port = options.port ?? (await freePort());
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const account = options.account
    ? `${options.account.user}:${encodeURIComponent(options.account.password)}@`
    : "";
  return {
    url: `${options.tls === "implicit" ? "smtps" : "smtp"}://${account}127.0.0.1:${port}`,
    port,
    emails,
    refuse,
    received: async (count) => {
      await until(`${count} emails`, () => emails.length >= count);
      return emails.slice(0, count);
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

const endOfHead = (part: string) => part.indexOf("\r\n\r\n");

function parse(raw: string): Pick<ReceivedEmail, "raw" | "header" | "text" | "html"> {
  const head = raw.slice(0, endOfHead(raw)).replace(/\r\n[ \t]+/g, " ");
  const header = (name: string) => new RegExp(`^${name}: (.*)$`, "im").exec(head)?.[1];
  const boundary = /boundary="([^"]+)"/.exec(head)?.[1];
  const parts = raw.split(`--${boundary}`);
  const partOf = (type: string) =>
    decode(parts.find((part) => part.trimStart().startsWith(`Content-Type: ${type}`)) ?? "");
  return { raw, header, text: partOf("text/plain"), html: partOf("text/html") };
}

function decode(part: string): string {
  const body = part.slice(endOfHead(part) + 4).replace(/\r\n$/, "");
  if (/^content-transfer-encoding: base64/im.test(part)) return Buffer.from(body, "base64").toString();
  if (!/^content-transfer-encoding: quoted-printable/im.test(part)) return body.replaceAll("\r\n", "\n");
  const bytes = body
    .replaceAll("=\r\n", "")
    .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, "latin1").toString().replaceAll("\r\n", "\n");
}
