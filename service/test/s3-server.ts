import { createHash, createHmac } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

export const S3_KEY = "test/key+with signs";
export const S3_SECRET = "secret/with+signs=";
const REGION = "eu-test-1";
const BUCKET = "stoa";

export interface S3Server {
  /** The value of S3_URL. */
  url: string;
  objects: Map<string, Buffer>;
  requests: string[];
  /** The next requests get 503, as from a busy server. */
  fails: { times: number };
  close(): Promise<void>;
}

const hmac = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest();
const sha256 = (data: string | Buffer) => createHash("sha256").update(data).digest("hex");

const signingKey = (day: string) =>
  ["s3", "aws4_request"].reduce(hmac, hmac(hmac(`AWS4${S3_SECRET}`, day), REGION));

/** RFC 3986 encoding, as the signature requires. */
const encoded = (text: string) =>
  encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);

/** Checks AWS Signature Version 4; null: valid. */
function whyUnsigned({ method, url, headers }: IncomingMessage, body: Buffer): string | null {
  const [, credential, names, signature] =
    /^AWS4-HMAC-SHA256 Credential=(.+?), ?SignedHeaders=(.+?), ?Signature=([0-9a-f]{64})$/.exec(
      headers.authorization ?? "",
    ) ?? [];
  if (!credential) return "no signature";
  const [day, region] = credential.slice(S3_KEY.length + 1).split("/");
  if (!credential.startsWith(`${S3_KEY}/`) || region !== REGION) return "another key or region";
  const declaredHash = String(headers["x-amz-content-sha256"]);
  if (declaredHash !== "UNSIGNED-PAYLOAD" && declaredHash !== sha256(body))
    return "another body than was signed";
  const { pathname, searchParams } = new URL(url!, "http://s3");
  const query = [...searchParams].map(([name, value]) => `${encoded(name)}=${encoded(value)}`).sort();
  const lines = names!.split(";").map((name) => `${name}:${String(headers[name]).trim()}\n`);
  const path = pathname
    .split("/")
    .map((part) => encoded(decodeURIComponent(part)))
    .join("/");
  const request = [method, path, query.join("&"), lines.join(""), names, declaredHash].join("\n");
  const scope = `${day}/${region}/s3/aws4_request`;
  const text = ["AWS4-HMAC-SHA256", headers["x-amz-date"], scope, sha256(request)].join("\n");
  return hmac(signingKey(day!), text).toString("hex") === signature ? null : "a wrong signature";
}

/** The used part of S3: put, get with a range, head and delete of objects, head of a bucket. Every request must be signed. */
export async function startS3Server(): Promise<S3Server> {
  const objects = new Map<string, Buffer>();
  const requests: string[] = [];
  const fails = { times: 0 };
  const server = createServer(async (request, response) => {
    const body = await buffer(request);
    requests.push(`${request.method} ${request.url}`);
    if (fails.times > 0) {
      fails.times--;
      return refuse(response, 503, "SlowDown");
    }
    const why = whyUnsigned(request, body);
    if (why) return refuse(response, 403, "SignatureDoesNotMatch", why);
    serve(objects, request, response, body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const credential = `${encodeURIComponent(S3_KEY)}:${encodeURIComponent(S3_SECRET)}`;
  return {
    url: `s3://${credential}@127.0.0.1:${port}/${BUCKET}/shop?region=${REGION}`,
    objects,
    requests,
    fails,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function refuse(response: ServerResponse, status: number, code: string, message = code): void {
  response.writeHead(status, { "content-type": "application/xml" });
  response.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>${message}</Message></Error>`);
}

function serve(
  objects: Map<string, Buffer>,
  { method, url, headers }: IncomingMessage,
  response: ServerResponse,
  body: Buffer,
): void {
  const [bucket, ...parts] = new URL(url!, "http://s3").pathname.slice(1).split("/");
  const key = parts.join("/");
  if (bucket !== BUCKET) {
    refuse(response, 404, "NoSuchBucket");
    return;
  }
  if (key === "") return void response.end();
  if (method === "PUT") {
    objects.set(key, body);
    return void response.end();
  }
  if (method === "DELETE") {
    objects.delete(key);
    return void response.writeHead(204).end();
  }
  const found = objects.get(key);
  if (!found) {
    refuse(response, 404, "NoSuchKey");
    return;
  }
  const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? "") ?? [];
  const bytes = first === undefined ? found : found.subarray(Number(first), Number(last) + 1);
  response.writeHead(first === undefined ? 200 : 206, { "content-length": bytes.length });
  response.end(method === "HEAD" ? undefined : bytes);
}
