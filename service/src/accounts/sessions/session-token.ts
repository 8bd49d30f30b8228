import { hkdfSync } from "node:crypto";
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

/** Returns the session's uuid; null for an invalid or expired token. */
export async function readSessionToken({ config, now }: Context, token: string): Promise<string | null> {
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
    return toUuid("ses", payload.jti!);
  } catch (error) {
    if (error instanceof errors.JOSEError) return null;
    throw error;
  }
}
