import { hash, hkdfSync } from "node:crypto";
import { errors, jwtVerify, SignJWT } from "jose";
import type { Context } from "../../core/context.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { firstOf } from "../../core/required.ts";

/** 30 days (specification). */
export const SESSION_SECONDS = 30 * 86_400;

interface SigningKey {
  id: string;
  secret: Buffer;
}

const signingKeys = new WeakMap<Buffer, SigningKey>();

/** A derived key: a key that signs links signs no sessions. */
function deriveSigningKey(sessionKey: Buffer): SigningKey {
  let key = signingKeys.get(sessionKey);
  if (!key) {
    const derive = (info: string, bytes: number) =>
      Buffer.from(hkdfSync("sha256", sessionKey, "", info, bytes));
    key = { id: derive("stoa session key id", 6).toString("hex"), secret: derive("stoa sessions", 32) };
    signingKeys.set(sessionKey, key);
  }
  return key;
}

export interface TokenSubject {
  sessionId: string;
  userId: string;
  email: string;
  name: string;
  createdAt: Date;
}

/** The session JWT (HS256): the specification's five claims, and `jti` with the session's id. */
export function signSessionToken({ config }: Context, subject: TokenSubject): Promise<string> {
  const { id, secret } = deriveSigningKey(firstOf(config.sessionKeys));
  const issuedAt = Math.floor(subject.createdAt.getTime() / 1000);
  return new SignJWT({ email: subject.email, name: subject.name })
    .setProtectedHeader({ alg: "HS256", typ: "JWT", kid: id })
    .setSubject(toId("usr", subject.userId))
    .setJti(toId("ses", subject.sessionId))
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + SESSION_SECONDS)
    .sign(secret);
}

interface VerifiedToken {
  sessionId: string | null;
  /** Seconds. */
  issuedAt: number;
  expiresAt: number;
}

const MAX_VERIFIED = 10_000;
/** By the digest of the token, for each ring of keys. A signature stays valid, only its time ends. */
const verifiedTokens = new WeakMap<Buffer[], Map<string, VerifiedToken>>();

function verifiedTokensOf(ring: Buffer[]): Map<string, VerifiedToken> {
  let tokens = verifiedTokens.get(ring);
  if (!tokens) {
    tokens = new Map();
    verifiedTokens.set(ring, tokens);
  }
  return tokens;
}

/** Returns the session's uuid; null for an invalid or expired token. */
export async function readSessionToken(ctx: Context, token: string): Promise<string | null> {
  const tokens = verifiedTokensOf(ctx.config.sessionKeys);
  const digest = hash("sha256", token, "base64");
  const known = tokens.get(digest);
  if (known && isInTime(known, ctx.now())) return known.sessionId;
  const verified = await verifySessionToken(ctx, token);
  if (!verified) return null;
  if (tokens.size >= MAX_VERIFIED) tokens.delete(tokens.keys().next().value!);
  tokens.set(digest, verified);
  return verified.sessionId;
}

function isInTime({ issuedAt, expiresAt }: VerifiedToken, now: Date): boolean {
  const at = Math.floor(now.getTime() / 1000);
  return issuedAt <= at && at < expiresAt && at - issuedAt <= SESSION_SECONDS;
}

async function verifySessionToken({ config, now }: Context, token: string): Promise<VerifiedToken | null> {
  try {
    const { payload } = await jwtVerify(
      token,
      ({ kid }) => {
        const key = config.sessionKeys.map(deriveSigningKey).find(({ id }) => id === kid);
        if (!key) throw new errors.JWKSNoMatchingKey();
        return key.secret;
      },
      {
        algorithms: ["HS256"],
        typ: "JWT",
        currentDate: now(),
        maxTokenAge: SESSION_SECONDS,
        requiredClaims: ["sub", "jti", "exp"],
      },
    );
    return { sessionId: toUuid("ses", payload.jti!), issuedAt: payload.iat!, expiresAt: payload.exp! };
  } catch (error) {
    if (error instanceof errors.JOSEError) return null;
    throw error;
  }
}
