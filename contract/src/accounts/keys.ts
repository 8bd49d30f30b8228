import { z } from "zod";
import { created, endpoint, json, listOf, one } from "../core/endpoint.ts";
import { paging, Timestamp } from "../core/envelope.ts";
import { type Permission, permissions } from "../core/permissions.ts";
import { visibleLine } from "../core/visible-text.ts";

export const apiKeyStatuses = ["active", "replaced", "expired", "revoked"] as const;

const mapPermissions = <T extends z.ZodType>(schema: T) =>
  Object.fromEntries(permissions.map((name) => [name, schema])) as Record<Permission, T>;

const grantedPermissions = z
  .object(mapPermissions(z.boolean()))
  .describe("Every permission by name, and whether the key has it")
  .meta({ id: "GrantedPermissions" });

const requestedPermissions = z
  .strictObject(mapPermissions(z.boolean("must be true or false").optional()))
  .describe("By name; false and missing permissions are not granted");

export const ApiKey = z
  .object({
    id: z.string(),
    name: z.string(),
    prefix: z.string().describe("The start of the key, enough to recognize it but not to use it"),
    permissions: grantedPermissions,
    status: z
      .enum(apiKeyStatuses)
      .describe("A replaced key works until expiresAt; an expired or revoked one never works again"),
    createdAt: Timestamp,
    expiresAt: Timestamp.nullable().describe("null: never"),
    lastUsedAt: Timestamp.nullable().describe("To the minute"),
    revokedAt: Timestamp.nullable(),
  })
  .meta({ id: "ApiKey" });

export const NewApiKey = z
  .object({
    id: z.string(),
    name: z.string(),
    permissions: grantedPermissions,
    key: z.string().describe("The key itself, shown only in this response"),
    expiresAt: Timestamp.nullable(),
  })
  .meta({ id: "NewApiKey" });

export const RotatedApiKey = NewApiKey.extend({
  replaced: z.object({
    id: z.string(),
    expiresAt: Timestamp.describe("Until when the old key works"),
  }),
}).meta({ id: "RotatedApiKey" });

export const CreateApiKey = z
  .strictObject({
    name: visibleLine(100),
    permissions: requestedPermissions,
    expiresAt: z.iso
      .datetime({ offset: true })
      .nullable()
      .default(null)
      .describe("In the future, at most five years ahead; null: never"),
  })
  .meta({ id: "CreateApiKey" });

export const RotateApiKey = z
  .strictObject({
    graceHours: z
      .int()
      .min(0)
      .max(7 * 24)
      .default(24)
      .describe("How long the old key keeps working, so that its users can change over"),
  })
  .meta({ id: "RotateApiKey" });

export const UpdateApiKey = z.strictObject({ name: visibleLine(100) }).meta({ id: "UpdateApiKey" });

export type ApiKey = z.input<typeof ApiKey>;
export type NewApiKey = z.input<typeof NewApiKey>;
export type RotatedApiKey = z.input<typeof RotatedApiKey>;
export type CreateApiKey = z.output<typeof CreateApiKey>;
export type UpdateApiKey = z.output<typeof UpdateApiKey>;
export type ApiKeyStatus = (typeof apiKeyStatuses)[number];

const tag = "api-keys";
const access = { who: "session" } as const;
const params = z.object({ keyId: z.string() });

export const list = endpoint({
  name: "apiKeys.list",
  tag,
  method: "GET",
  path: "/api-keys",
  summary: "List your API keys, newest first",
  description: "Includes keys that no longer work, so that you can recognize a key in a log.",
  access,
  query: z.strictObject(paging),
  response: listOf(ApiKey),
});

export const create = endpoint({
  name: "apiKeys.create",
  tag,
  method: "POST",
  path: "/api-keys",
  summary: "Create an API key",
  description:
    "The response shows the key once, and the account's owner gets an email. An account can have 25 active keys; the 26th is 422.",
  access,
  requiresFreshSignIn: true,
  request: json(CreateApiKey, {
    name: "My shop's server",
    permissions: { "products:read": true, "purchases:read": true },
  }),
  response: created(NewApiKey),
  showsSecret: true,
  errors: ["VALIDATION_ERROR"],
});

export const update = endpoint({
  name: "apiKeys.update",
  tag,
  method: "PATCH",
  path: "/api-keys/:keyId",
  summary: "Rename an API key",
  description:
    "Permissions and lifetime of a key do not change: replace it by a new one. A key that no longer works can be renamed, too.",
  access,
  params,
  request: json(UpdateApiKey, { name: "The shop's second server" }),
  response: one(ApiKey),
  errors: ["API_KEY_NOT_FOUND"],
});

export const rotate = endpoint({
  name: "apiKeys.rotate",
  tag,
  method: "POST",
  path: "/api-keys/:keyId/rotate",
  summary: "Replace an API key",
  description:
    "Creates a key with the same name, permissions and lifetime. The old one works for another graceHours. Only an active key can be replaced. The account's owner gets an email.",
  access,
  requiresFreshSignIn: true,
  params,
  request: json(RotateApiKey, { graceHours: 48 }),
  response: created(RotatedApiKey),
  showsSecret: true,
  errors: ["API_KEY_NOT_FOUND", "INVALID_STATE"],
});

export const revoke = endpoint({
  name: "apiKeys.revoke",
  tag,
  method: "DELETE",
  path: "/api-keys/:keyId",
  summary: "Revoke an API key",
  description: "It stops working at once and stays listed. Revoking a revoked key changes nothing.",
  access,
  params,
  response: one(ApiKey),
  errors: ["API_KEY_NOT_FOUND"],
});
