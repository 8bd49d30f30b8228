/** Finds out why the signature of a delivery does not match. It runs where it is called and sends nothing. */

export interface Delivery {
  /** As `Name: value` in lines. */
  headers: string;
  /** The body as the receiver has it. */
  body: string;
  secret: string;
}

export interface Step {
  name: string;
  state: "good" | "bad" | "warning" | "skipped";
  text: string;
  /** What was computed or compared, to be shown as code. */
  detail?: string;
}

export interface Diagnosis {
  /** Whether a receiver that follows the guide accepts the delivery. */
  isValid: boolean;
  /** What is wrong, or that nothing is. */
  verdict: string;
  /** What to do; null: nothing. */
  advice: string | null;
  steps: Step[];
  /** The text that was signed; null: a header is missing. */
  baseString: string | null;
}

const TOLERANCE_SECONDS = 300;
const SECRET_BYTES = 32;

export async function diagnoseSignature(delivery: Delivery, nowMs: number): Promise<Diagnosis> {
  const headers = parseHeaders(delivery.headers);
  const steps: Step[] = [];
  const missing = ["webhook-id", "webhook-timestamp", "webhook-signature"].filter(
    (name) => !headers.get(name),
  );
  steps.push(headerStep(headers, missing));
  if (missing.length > 0)
    return {
      ...{ isValid: false, steps, baseString: null },
      verdict: `${missing.join(", ")} ${missing.length === 1 ? "is" : "are"} missing.${
        (await hasOwnSignature(delivery, headers))
          ? " X-Service-Signature is right, so the secret and the body are."
          : ""
      }`,
      advice:
        "Pass all headers of the delivery to your verification. A proxy or a framework may have removed or renamed them.",
    };
  const id = headers.get("webhook-id") ?? "";
  const timestamp = headers.get("webhook-timestamp") ?? "";
  const signatures = signaturesIn(headers.get("webhook-signature") ?? "");
  const age = ageStep(timestamp, nowMs);
  steps.push(age);
  const secret = secretStep(delivery.secret);
  steps.push(secret.step);
  const baseString = `${id}.${timestamp}.${delivery.body}`;
  const expected = secret.key && `v1,${toBase64(await hmac(secret.key, baseString))}`;
  steps.push(...compareSteps(baseString, expected, signatures));
  const isMatch = expected !== null && signatures.includes(expected);
  if (isMatch) return { ...matched(age, secret.step), steps, baseString };
  const cause = await findCause({ id, timestamp, delivery, signatures, headers });
  if (cause) return { isValid: false, verdict: cause.verdict, advice: cause.advice, steps, baseString };
  if (secret.step.state === "bad")
    return { isValid: false, verdict: secret.step.text, advice: SECRET_ADVICE, steps, baseString };
  return {
    ...{ isValid: false, steps, baseString },
    verdict:
      "Another secret signed this delivery, or the body and the headers belong to different deliveries.",
    advice:
      "Compare the secret with that of this endpoint: each endpoint has its own, and a rotation replaces it. Take the raw body before any parser.",
  };
}

const SECRET_ADVICE =
  "Copy the whole secret, from whsec_ to its last character. If you do not have it, rotate it.";

function matched(age: Step, secret: Step): Pick<Diagnosis, "isValid" | "verdict" | "advice"> {
  if (age.state === "bad")
    return {
      isValid: false,
      verdict: `The signature is right, but the delivery is not accepted: ${lowerFirst(age.text)}`,
      advice:
        "An old delivery that comes again may be an attack. Verify each delivery when it arrives, and check the clock of your server. Send again gives it a new timestamp.",
    };
  if (secret.state === "warning")
    return { isValid: true, verdict: "The signature is right.", advice: secret.text };
  return {
    isValid: true,
    verdict: "The signature is right. Your server accepts this delivery.",
    advice: null,
  };
}

const lowerFirst = (text: string) => text.charAt(0).toLowerCase() + text.slice(1);

/** Also lines that were copied from a terminal, JSON or an array. */
function parseHeaders(text: string): Map<string, string> {
  const headers = new Map<string, string>();
  for (const line of text.split(/\r?\n/)) {
    const match = /^[\s"'<>]*([\w-]+)["']?\s*[:=]\s*["']?(.*?)["']?,?\s*$/.exec(line);
    if (match?.[1] && match[2] !== undefined) headers.set(match[1].toLowerCase(), match[2]);
  }
  return headers;
}

const signaturesIn = (text: string): string[] => text.split(/\s+/).filter((each) => each !== "");

function headerStep(headers: Map<string, string>, missing: string[]): Step {
  const own = [...headers.keys()].filter(
    (name) => name.endsWith("-signature") && name !== "webhook-signature",
  );
  if (missing.length === 0)
    return { name: "Headers", state: "good", text: "The three headers of Standard Webhooks are there." };
  return {
    name: "Headers",
    state: "bad",
    text: `Missing: ${missing.join(", ")}.${own.length > 0 ? ` ${own.join(", ")} alone is not checked here.` : ""}`,
  };
}

function ageStep(timestamp: string, nowMs: number): Step {
  const name = "Timestamp";
  if (!/^\d+$/.test(timestamp))
    return { name, state: "bad", text: "webhook-timestamp is not a number of seconds.", detail: timestamp };
  const seconds = Number(timestamp);
  if (seconds > 100_000_000_000)
    return {
      name,
      state: "bad",
      text: "webhook-timestamp has milliseconds; it was changed on its way.",
      detail: timestamp,
    };
  const age = Math.round(nowMs / 1_000 - seconds);
  const detail = `${timestamp} = ${new Date(seconds * 1_000).toISOString()}`;
  if (age > TOLERANCE_SECONDS)
    return {
      name,
      state: "bad",
      text: `The timestamp is ${describeAge(age)} old; ${TOLERANCE_SECONDS / 60} minutes are allowed.`,
      detail,
    };
  if (age < -TOLERANCE_SECONDS)
    return {
      name,
      state: "bad",
      text: `The timestamp is ${describeAge(-age)} in the future: a clock is wrong.`,
      detail,
    };
  return { name, state: "good", text: `The timestamp is ${describeAge(Math.abs(age))} old.`, detail };
}

function describeAge(seconds: number): string {
  for (const [unit, length] of [
    ["day", 86_400],
    ["hour", 3_600],
    ["minute", 60],
  ] as const) {
    const count = Math.floor(seconds / length);
    if (count > 0) return `${count} ${unit}${count === 1 ? "" : "s"}`;
  }
  return `${seconds} second${seconds === 1 ? "" : "s"}`;
}

function secretStep(secret: string): { step: Step; key: Bytes | null } {
  const name = "Secret";
  const bad = (text: string) => ({ step: { name, state: "bad" as const, text }, key: null });
  if (secret === "") return bad("The secret is missing.");
  if (secret !== secret.trim()) {
    const key = keyOf(secret.trim());
    const text = "The secret has a space or a line break around it: your server may not remove it.";
    return { step: { name, state: "warning", text }, key };
  }
  if (/^(["']).*\1$/.test(secret)) return bad("The secret has quotes around it.");
  if (/%(2B|2F|3D)/i.test(secret)) return bad("The secret is URL-encoded: %2B is +, %2F is /, %3D is =.");
  if (fromBase64Text(secret)?.startsWith("whsec_")) return bad("The secret is base64-encoded once more.");
  if (!secret.startsWith("whsec_")) return bad("The secret does not begin with whsec_.");
  const key = keyOf(secret);
  if (key === null) return bad("What follows whsec_ is not base64: a character is missing or was changed.");
  if (key.length !== SECRET_BYTES)
    return {
      step: {
        name,
        state: "bad",
        text: `The secret has ${key.length} bytes; those of Stoa have ${SECRET_BYTES}: a part is missing.`,
      },
      key,
    };
  return {
    step: { name, state: "good", text: `The part after whsec_ decodes to ${SECRET_BYTES} bytes: the key.` },
    key,
  };
}

function compareSteps(baseString: string, expected: string | null, signatures: string[]): Step[] {
  const base: Step = {
    name: "Signed text",
    state: "good",
    text: "webhook-id, webhook-timestamp and the raw body, with dots between them.",
    detail: baseString,
  };
  if (expected === null)
    return [base, { name: "Signature", state: "skipped", text: "Not computed: the secret has no key." }];
  const isMatch = signatures.includes(expected);
  return [
    base,
    {
      name: "HMAC-SHA256",
      state: "good",
      text: "Of the signed text, with the key of the secret, in base64.",
      detail: expected,
    },
    {
      name: "Comparison",
      state: isMatch ? "good" : "bad",
      text: isMatch
        ? "webhook-signature contains it."
        : `webhook-signature contains ${signatures.length === 1 ? "another one" : `${signatures.length} others`}.`,
      detail: signatures.join("\n"),
    },
  ];
}

interface Evidence {
  id: string;
  timestamp: string;
  delivery: Delivery;
  signatures: string[];
  headers: Map<string, string>;
}

interface Cause {
  verdict: string;
  advice: string;
}

/** Tries what usually goes wrong, until one explains the signature. */
async function findCause({ id, timestamp, delivery, signatures, headers }: Evidence): Promise<Cause | null> {
  const { body, secret } = delivery;
  const signs = async (key: Bytes | null, text: string) =>
    key !== null && signatures.includes(`v1,${toBase64(await hmac(key, text))}`);
  const start = `${id}.${timestamp}.`;
  for (const { value, verdict, advice } of secretVariants(secret))
    if (await signs(keyOf(value), start + body)) return { verdict, advice };
  const key = keyOf(secret.trim());
  for (const { value, verdict } of bodyVariants(body))
    if (await signs(key, start + value)) return { verdict, advice: BODY_ADVICE };
  if (await signs(encode(secret), start + body))
    return {
      verdict: "The whole text of the secret was used as the key.",
      advice: "The sender must use the decoded part after whsec_.",
    };
  for (const text of [`${timestamp}.${body}`, body, `${id}.${body}`])
    if (await signs(key, text))
      return {
        verdict: "The signature covers another text than id, timestamp and body.",
        advice: "Sign webhook-id, webhook-timestamp and the raw body, with dots between them.",
      };
  for (const [name, value] of headers)
    for (const [part, text] of [
      ["webhook-timestamp", `${id}.${value}.${body}`],
      ["webhook-id", `${value}.${timestamp}.${body}`],
    ] as const)
      if (/-(timestamp|event-id)$/.test(name) && (await signs(key, text)))
        return {
          verdict: `${part} was changed: the signature covers ${value}.`,
          advice: `Pass the header ${part} as it came. ${name} still has its value.`,
        };
  if (await hasOwnSignature(delivery, headers))
    return {
      verdict: "X-Service-Signature is right, and webhook-signature was changed.",
      advice:
        "Something between Stoa and your server rewrites headers: webhook-id, webhook-timestamp or webhook-signature.",
    };
  return null;
}

const BODY_ADVICE =
  'Verify the raw bytes before any JSON parser: express.raw({ type: "application/json" }), or await request.text().';

function secretVariants(secret: string): { value: string; verdict: string; advice: string }[] {
  const trimmed = secret.trim();
  const unquoted = trimmed.replace(/^(["'])(.*)\1$/, "$2");
  return [
    {
      value: unquoted,
      verdict: "The secret has quotes around it.",
      advice: "Remove the quotes from the environment variable.",
    },
    {
      value: decodeUrl(trimmed),
      verdict: "The secret is URL-encoded.",
      advice: "Decode it: %2B is +, %2F is /, %3D is =.",
    },
    {
      value: fromBase64Text(trimmed) ?? "",
      verdict: "The secret is base64-encoded once more.",
      advice: "Decode it once: it begins with whsec_. Kubernetes secrets are encoded like this.",
    },
    {
      value: `whsec_${trimmed}`,
      verdict: "The secret lost its beginning, whsec_.",
      advice: "Copy the whole secret; libraries expect the prefix.",
    },
  ].filter(({ value }) => value !== "" && value !== secret);
}

function bodyVariants(body: string): { value: string; verdict: string }[] {
  const variants = [
    { value: body.trim(), verdict: "The body has spaces or line breaks around it that were not sent." },
    { value: body.replaceAll("\r\n", "\n"), verdict: "The line breaks of the body were changed to CRLF." },
    { value: `${body}\n`, verdict: "The body lost its last line break." },
    { value: body.replace(/^\ufeff/, ""), verdict: "The body has a byte order mark that was not sent." },
  ];
  try {
    const parsed = JSON.parse(body);
    variants.push(
      {
        value: JSON.stringify(parsed),
        verdict: "The body was parsed and written again: its white space changed.",
      },
      {
        value: escapeUnicode(JSON.stringify(parsed)),
        verdict: "The body was parsed and written again: escaped characters were decoded.",
      },
    );
  } catch {
    // Text that is not JSON has no other forms.
  }
  return variants.filter(({ value }) => value !== body);
}

const escapeUnicode = (text: string) =>
  text.replace(
    /[\u0080-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

/** Whether the service's own header, X-Service-Signature or another prefix, matches. */
async function hasOwnSignature({ body, secret }: Delivery, headers: Map<string, string>): Promise<boolean> {
  const all = [...headers];
  const own = all.filter(([name]) => /^x-.*-signature(-previous)?$/.test(name)).map(([, value]) => value);
  const timestamps = all.filter(([name]) => name.endsWith("-timestamp")).map(([, value]) => value);
  const key = encode(secret.trim());
  for (const text of [body, ...timestamps.map((timestamp) => `${timestamp}.${body}`)]) {
    const digest = toHex(await hmac(key, text));
    if (own.some((value) => value.replace(/^sha256=/, "").toLowerCase() === digest)) return true;
  }
  return false;
}

type Bytes = Uint8Array<ArrayBuffer>;

const encode = (text: string): Bytes => new TextEncoder().encode(text);

async function hmac(key: Bytes, text: string): Promise<Bytes> {
  if (key.length === 0) return new Uint8Array();
  const imported = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, [
    "sign",
  ]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, encode(text)));
}

/** null: not a secret. */
function keyOf(secret: string): Bytes | null {
  if (!secret.startsWith("whsec_")) return null;
  const decoded = decodeBase64(secret.slice("whsec_".length));
  return decoded === null || decoded.length === 0 ? null : decoded;
}

function decodeBase64(text: string): Bytes | null {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return null;
  }
}

function fromBase64Text(text: string): string | null {
  const bytes = text.length > 20 ? decodeBase64(text) : null;
  return bytes && new TextDecoder().decode(bytes).trim();
}

function decodeUrl(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const toBase64 = (bytes: Bytes) => btoa(String.fromCharCode(...bytes));
const toHex = (bytes: Bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
