import { isLoopbackHost } from "../loopback.ts";

const OPTIONS = ["region", "tls"];

export interface S3Location {
  endpoint: string;
  region: string;
  bucket: string;
  prefix: string;
  /** null: the machine's credentials, such as a role or the AWS variables. */
  credentials: { accessKeyId: string; secretAccessKey: string } | null;
}

/**
 * `s3://KEY:SECRET@host:port/bucket/prefix?region=eu-central-1`. Uses TLS, except on loopback or with `?tls=false`. Throws an Error with
 * the problem.
 */
export function parseS3Url(text: string): S3Location {
  const url = URL.parse(text);
  if (url?.protocol !== "s3:" || !url.hostname) throw new Error("is not s3://KEY:SECRET@host/bucket");
  for (const name of url.searchParams.keys())
    if (!OPTIONS.includes(name)) throw new Error(`takes ${OPTIONS.join(" and ")}, not ${name}`);
  const tls = url.searchParams.get("tls") ?? String(!isLoopbackHost(url.hostname));
  if (tls !== "true" && tls !== "false") throw new Error("tls is true or false");
  const [bucket, ...prefix] = url.pathname.split("/").filter(Boolean).map(decode);
  if (bucket === undefined) throw new Error("names no bucket: s3://KEY:SECRET@host/bucket");
  return {
    endpoint: `${tls === "true" ? "https" : "http"}://${url.host}`,
    region: url.searchParams.get("region") ?? "us-east-1",
    bucket,
    prefix: prefix.map((part) => `${part}/`).join(""),
    credentials: credentialsIn(url),
  };
}

function credentialsIn({ username, password }: URL): S3Location["credentials"] {
  if (!username && !password) return null;
  if (!username || !password) throw new Error("has half of a credential: s3://KEY:SECRET@host/bucket");
  return { accessKeyId: decode(username), secretAccessKey: decode(password) };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error("has a % that begins no escape: write %25");
  }
}
