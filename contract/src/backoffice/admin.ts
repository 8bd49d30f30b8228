import { z } from "zod";
import { Account } from "../accounts/account.ts";
import { OAuthClient } from "../accounts/oauth.ts";
import { plans, Quotas } from "../commerce/plans.ts";
import { endpoint, json, listOf, one } from "../core/endpoint.ts";
import { filter, paging, Timestamp } from "../core/envelope.ts";
import { roles } from "../core/permissions.ts";
import { visibleText } from "../core/visible-text.ts";

const quota = Quotas.nullable().describe("The account's own limits in place of its plan's; null: its plan's");
const reason = visibleText(500).min(1).describe("Stored in the audit log");

export const AdminUser = Account.omit({ permissions: true, twoFactor: true, view: true })
  .extend({
    quota,
    bannedAt: Timestamp.nullable(),
    banReason: z.string().nullable(),
    closedAt: Timestamp.nullable(),
  })
  .meta({ id: "AdminUser", description: "An account as administrators see it." });

export const AdminUserDetail = AdminUser.extend({ twoFactor: z.object({ enabled: z.boolean() }) }).meta({
  id: "AdminUserDetail",
});

export const UpdateUser = z
  .strictObject({
    role: z.enum(roles),
    plan: z.enum(plans),
    quota,
    verified: z
      .boolean()
      .describe("The badge beside an author's name, which lets them sell without moderation"),
    reason,
  })
  .partial()
  .meta({ id: "UpdateUser" });

export const AuditEntry = z
  .object({
    id: z.string(),
    actor: z
      .object({ id: z.string(), name: z.string().nullable() })
      .nullable()
      .describe("null: the operator at the command line, or the service itself"),
    action: z.string().describe("A noun and a past participle: user.banned"),
    target: z.object({ type: z.string(), id: z.string() }).nullable(),
    ip: z.string().nullable(),
    userAgent: z.string().nullable(),
    requestId: z.string().nullable(),
    details: z.record(z.string(), z.unknown()),
    createdAt: Timestamp,
  })
  .meta({ id: "AuditEntry" });

export const AdminOAuthClient = OAuthClient.extend({
  owner: z.object({ id: z.string(), name: z.string() }).nullable().describe("null: it registered itself"),
  registeredFrom: z.string().nullable().describe("The network that registered it, if it has no owner"),
  grants: z.int().describe("Number of people with a grant for it now"),
}).meta({ id: "AdminOAuthClient" });

export type AdminUser = z.input<typeof AdminUser>;
export type AdminUserDetail = z.input<typeof AdminUserDetail>;
export type UpdateUser = z.output<typeof UpdateUser>;
export type AuditEntry = z.input<typeof AuditEntry>;
export type AdminOAuthClient = z.input<typeof AdminOAuthClient>;

const admin = { who: "admin" } as const;
const params = z.object({ userId: z.string() });

export const users = endpoint({
  name: "admin.users.list",
  method: "GET",
  path: "/admin/users",
  summary: "List and search accounts, newest first",
  access: admin,
  query: z.strictObject({
    ...paging,
    search: z
      .string()
      .trim()
      .min(1)
      .max(254)
      .optional()
      .describe("A part of an email address or a name, or an id"),
    role: filter(z.enum(roles)),
    plan: filter(z.enum(plans)),
    status: filter(z.enum(["active", "banned", "closed"])),
  }),
  response: listOf(AdminUser),
});

export const user = endpoint({
  name: "admin.users.get",
  method: "GET",
  path: "/admin/users/:userId",
  summary: "Read one account",
  access: admin,
  params,
  response: one(AdminUserDetail),
  errors: ["USER_NOT_FOUND"],
});

export const updateUser = endpoint({
  name: "admin.users.update",
  method: "PATCH",
  path: "/admin/users/:userId",
  summary: "Change the role, plan, quota or badge of an account",
  description:
    "Takes effect at the account's next request. A caller cannot change their own role, and the last administrator keeps the role.",
  access: admin,
  params,
  request: json(UpdateUser, {
    plan: "enterprise",
    quota: [{ requests: 50_000, seconds: 3_600 }],
    reason: "Agreed by mail",
  }),
  response: one(AdminUserDetail),
  supportsIfMatch: true,
  errors: ["USER_NOT_FOUND", "INVALID_STATE", "VALIDATION_ERROR"],
});

export const ban = endpoint({
  name: "admin.users.ban",
  method: "POST",
  path: "/admin/users/:userId/ban",
  summary: "Ban an account",
  description:
    "Takes effect at once: sessions end, and no API key, token or link works until an unban. Runs are canceled; the owner can continue them after an unban. Products are neither listed nor sold meanwhile, and stay available to their buyers. Payouts wait.",
  access: admin,
  params,
  request: json(z.strictObject({ reason }).meta({ id: "BanUser" }), {
    reason: "Sold prompts that were not theirs",
  }),
  response: one(AdminUserDetail),
  errors: ["USER_NOT_FOUND", "INVALID_STATE", "VALIDATION_ERROR"],
});

export const unban = endpoint({
  name: "admin.users.unban",
  method: "POST",
  path: "/admin/users/:userId/unban",
  summary: "Unban an account; its owner signs in again",
  access: admin,
  params,
  response: one(AdminUserDetail),
  errors: ["USER_NOT_FOUND", "INVALID_STATE"],
});

export const endSessions = endpoint({
  name: "admin.users.endSessions",
  method: "POST",
  path: "/admin/users/:userId/end-sessions",
  summary: "End all sessions of an account",
  access: admin,
  params,
  response: one(z.object({ ended: z.int().describe("Number of ended sessions") })),
  errors: ["USER_NOT_FOUND"],
});

export const audit = endpoint({
  name: "admin.audit.list",
  method: "GET",
  path: "/admin/audit",
  summary: "Read the audit log, newest first",
  description: "Append-only. Totals are exact up to 10,000, above that a lower bound.",
  access: admin,
  query: z.strictObject({
    ...paging,
    actor: z.string().max(100).optional().describe("The id of the account that acted"),
    action: z.string().max(100).optional().describe("user.banned, or user.* for all actions of a noun"),
    target: z.string().max(100).optional().describe("The id of the target"),
    from: z.iso.datetime({ offset: true }).optional().describe("From this time, inclusive"),
    to: z.iso.datetime({ offset: true }).optional().describe("Until this time, exclusive"),
  }),
  response: listOf(AuditEntry),
});

export const oauthClients = endpoint({
  name: "admin.oauthClients.list",
  method: "GET",
  path: "/admin/oauth-clients",
  summary: "List the OAuth clients of all accounts, newest first",
  access: admin,
  query: z.strictObject({
    ...paging,
    search: z.string().trim().min(1).max(100).optional().describe("A part of a name, or an id"),
    owner: z
      .string()
      .max(100)
      .optional()
      .describe("The id of the owning account, or none for clients that registered themselves"),
  }),
  response: listOf(AdminOAuthClient),
});

export const becomeFirst = endpoint({
  name: "signIn.becomeFirstAdmin",
  method: "POST",
  base: "/api/auth",
  tag: "sign-in",
  path: "/first-admin",
  summary: "Become the first administrator",
  description:
    "Needs a session and the token of the link that a start prints while there is no administrator. The signed-in account becomes the administrator. Then set up two-factor authentication: administrators act only in a session with it.",
  access: { who: "public" },
  request: json(z.strictObject({ token: z.string() }).meta({ id: "BecomeFirstAdmin" }), {
    token: "dGhpcyBpcyBub3QgYSByZWFsIHRva2VuLCBvZiBjb3Vyc2U",
  }),
  response: one(
    z.object({
      id: z.string(),
      role: z.literal("admin"),
      twoFactor: z.object({ enabled: z.boolean() }),
      message: z.string(),
    }),
  ),
  errors: ["INVALID_SESSION", "INVALID_TOKEN", "INVALID_STATE"],
});
