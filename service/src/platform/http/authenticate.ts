import {
  type Access,
  type Permission,
  type Role,
  type RolePermission,
  rolePermissions,
} from "@stoa/contract";
import type { Caller, Member, SessionCaller } from "../../core/context.ts";
import { ApiError, invalidRequest } from "../../core/errors.ts";

export const SESSION_COOKIE = "__Host-session";
export const GUEST_COOKIE = "__Host-guest";

/** Each returns null for a credential that is unknown, revoked, expired or of another environment. */
export interface CredentialLookup {
  key(value: string): Promise<Caller | null>;
  session(token: string): Promise<Caller | null>;
  /** An access token of our own OAuth server. */
  token(value: string): Promise<Caller | null>;
  guest(cookie: string): Caller | null;
}

export interface RequestCredentials {
  authorization: string | undefined;
  apiKeyInQuery: unknown;
  sessionCookie: string | undefined;
  guestCookie: string | undefined;
  /** Throws when another site made the browser send its cookies. */
  requireSameOrigin(): void;
}

export const hasCredentials = ({
  authorization,
  apiKeyInQuery,
  sessionCookie,
  guestCookie,
}: RequestCredentials) =>
  [authorization, apiKeyInQuery, sessionCookie, guestCookie].some((value) => value !== undefined);

const BEARER = /^Bearer ([\x21-\x7e]{1,4096})$/i;
/** The three parts of a signed JWT: base64url and two dots. */
const JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/;
const refused = () => new ApiError("INVALID_API_KEY");
const unreadable = () =>
  new ApiError(
    "INVALID_API_KEY",
    "The Authorization header must be the word Bearer, a space and an API key or token: `Authorization: Bearer <key>`.",
  );

/**
 * The only place where a credential becomes a caller. The header beats the query, which beats the cookies; a bad one
 * never falls through to the next.
 */
export async function authenticate(
  identify: CredentialLookup,
  presented: RequestCredentials,
): Promise<Caller> {
  const caller = await callerOf(identify, presented);
  if (!caller) throw refused();
  return caller;
}

async function callerOf(identify: CredentialLookup, presented: RequestCredentials): Promise<Caller | null> {
  const inHeader = parseBearer(presented.authorization);
  const inQuery = inApiKey(presented.apiKeyInQuery);
  if (inHeader !== null && inQuery !== null && inHeader !== inQuery) {
    throw invalidRequest("api_key", "differs from the Authorization header; send one of them");
  }
  if (inHeader !== null) return byBearer(identify, inHeader);
  if (inQuery !== null) return inQuery.startsWith("stoa_") ? identify.key(inQuery) : null;
  if (presented.sessionCookie !== undefined) {
    const caller = await identify.session(presented.sessionCookie);
    if (caller) presented.requireSameOrigin();
    return caller;
  }
  return presented.guestCookie === undefined ? null : identify.guest(presented.guestCookie);
}

/** null: no header; empty: a header in an unknown format. */
export const parseBearer = (header: string | undefined) =>
  header === undefined ? null : (BEARER.exec(header.trim())?.[1] ?? "");

function inApiKey(value: unknown): string | null {
  if (value === undefined) return null;
  if (typeof value !== "string") throw invalidRequest("api_key", "must be given once");
  return value;
}

function byBearer(identify: CredentialLookup, credential: string): Promise<Caller | null> | null {
  if (credential === "") throw unreadable();
  if (credential.startsWith("stoa_")) return identify.key(credential);
  return JWT.test(credential) ? identify.session(credential) : identify.token(credential);
}

const forbidden = (required: string, message: string) => new ApiError("UNAUTHORIZED", message, { required });

/** Denies by default. */
export function mustBeAllowed(caller: Caller, access: Access): void {
  const problem = access.who === "public" ? null : whyNotAllowed(caller, access);
  if (problem) throw problem;
}

type RestrictedAccess = Exclude<Access, { who: "public" }>;

function whyNotAllowed(caller: Caller, access: RestrictedAccess): ApiError | null {
  if (caller.kind === "guest") {
    if (access.who === "visitor") return null;
    return forbidden("account", "A visitor may only look around; sign in for this.");
  }
  switch (access.who) {
    case "visitor":
      return whyNoPermission(caller, access.permission);
    case "member":
      return whyNoPermission(caller, access.permission) ?? whyNoRole(caller, access.rolePermission);
    case "session":
      return whyNoSession(caller) ?? whyNoRole(caller, access.rolePermission);
    case "admin":
      return whyNoAdmin(caller);
    default:
      return forbidden("nobody", "No caller may do this.");
  }
}

/** A session has every permission of its role. */
function whyNoPermission(caller: Member, permission: Permission | null): ApiError | null {
  if (caller.kind === "session" || permission === null || caller.permissions.has(permission)) return null;
  return forbidden(permission, `The credential lacks the permission ${permission}.`);
}

function whyNoSession(caller: Member): ApiError | null {
  if (caller.kind === "session") return null;
  return forbidden("session", "This needs a person who is signed in; a key or token cannot do it.");
}

function whyNoRole({ role }: Member, permission: RolePermission | undefined): ApiError | null {
  if (permission === undefined || hasRolePermission(role, permission)) return null;
  return forbidden(permission, `The account's role lacks ${permission}.`);
}

export const hasRolePermission = (role: Role, permission: RolePermission) =>
  (rolePermissions[role] as readonly RolePermission[]).includes(permission);

const isAdminsSession = (caller: Caller): caller is SessionCaller =>
  caller.kind === "session" && hasRolePermission(caller.role, "view:admin_panel");

/** Administrators act in sessions that they entered with two factors, and in no other way. */
export const isAdmin = (caller: Caller): caller is SessionCaller =>
  isAdminsSession(caller) && caller.secondFactor;

function whyNoAdmin(caller: Member): ApiError | null {
  if (!isAdminsSession(caller))
    return forbidden("view:admin_panel", "Only an administrator's session may do this.");
  if (caller.secondFactor) return null;
  return forbidden("two-factor", "Set up two-factor authentication, or sign in with a code of it.");
}
