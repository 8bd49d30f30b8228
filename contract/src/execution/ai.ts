import { z } from "zod";
import { created, endpoint, json, listOf, one } from "../core/endpoint.ts";
import { paging, Timestamp } from "../core/envelope.ts";
import { Provider } from "../core/providers.ts";
import { visibleLine } from "../core/visible-text.ts";

const access = { who: "member", permission: "ai:execute" } as const;

const limits = {
  monthlyBudget: z
    .number()
    .min(0.01)
    .multipleOf(0.01, "has more decimals than USD")
    .max(1_000_000)
    .nullable()
    .describe(
      "USD in a calendar month (UTC), at list prices. A call reserves its highest possible cost until it ends. A call without maxTokens gets a limit that fits the rest",
    ),
  maxConcurrency: z.int().min(1).max(100).nullable().describe("Parallel calls"),
};

export const ProviderKey = z
  .object({
    id: z.string(),
    provider: Provider,
    name: z.string(),
    last4: z.string().describe("The last four characters of the key; nothing else of it can be read"),
    baseUrl: z.string().nullable(),
    status: z
      .enum(["unverified", "valid", "invalid"])
      .describe("The provider's answer at the last check or call; unverified: none yet"),
    ...limits,
    createdAt: Timestamp,
    lastUsedAt: Timestamp.nullable(),
  })
  .meta({ id: "ProviderKey" });

const secret = z
  .string()
  .trim()
  .min(1)
  .max(1_000)
  .regex(/^[\x21-\x7e]*$/, "must be printable ASCII without spaces")
  .describe("Write-only");
const baseUrl = z.string().max(2_048).describe("Only for openai-compatible and ollama");

export const CreateProviderKey = z
  .strictObject({
    provider: Provider.exclude(["sandbox"]),
    name: visibleLine(100),
    key: secret,
    baseUrl: baseUrl.optional(),
    monthlyBudget: limits.monthlyBudget.optional(),
    maxConcurrency: limits.maxConcurrency.optional(),
  })
  .meta({ id: "CreateProviderKey" });

export const UpdateProviderKey = z
  .strictObject({
    name: visibleLine(100),
    key: secret,
    baseUrl,
    ...limits,
  })
  .partial()
  .meta({ id: "UpdateProviderKey" });

export type ProviderKey = z.input<typeof ProviderKey>;
export type CreateProviderKey = z.output<typeof CreateProviderKey>;
export type UpdateProviderKey = z.output<typeof UpdateProviderKey>;

const keyParams = z.object({ providerKeyId: z.string() });

export const keys = endpoint({
  name: "ai.keys.list",
  tag: "ai",
  method: "GET",
  path: "/ai/keys",
  summary: "List your provider keys",
  access,
  query: z.strictObject(paging),
  response: listOf(ProviderKey),
});

export const createKey = endpoint({
  name: "ai.keys.create",
  tag: "ai",
  method: "POST",
  path: "/ai/keys",
  summary: "Store a provider key",
  description:
    "The key is encrypted before it is stored; later only its last four characters are shown. The provider is asked whether it accepts the key, which costs no tokens. `status` is `invalid` if it refuses, and `unverified` if it does not answer within 5 seconds. The key is stored in any case. An account can have 100; the 101st is 422.",
  access,
  request: json(CreateProviderKey, {
    provider: "openai",
    name: "My key",
    key: "sk-…".replace("…", "example"),
  }),
  response: created(ProviderKey),
  errors: ["VALIDATION_ERROR"],
});

export const updateKey = endpoint({
  name: "ai.keys.update",
  tag: "ai",
  method: "PATCH",
  path: "/ai/keys/:providerKeyId",
  summary: "Change a provider key",
  description: "A new `key` is checked like a newly stored one. A new `baseUrl` needs a new `key`.",
  access,
  params: keyParams,
  request: json(UpdateProviderKey, { name: "My key for prompts", monthlyBudget: 20 }),
  response: one(ProviderKey),
  errors: ["PROVIDER_KEY_NOT_FOUND"],
});

export const deleteKey = endpoint({
  name: "ai.keys.delete",
  tag: "ai",
  method: "DELETE",
  path: "/ai/keys/:providerKeyId",
  summary: "Delete a provider key",
  access,
  params: keyParams,
  response: one(z.object({ id: z.string(), deleted: z.literal(true) })),
  errors: ["PROVIDER_KEY_NOT_FOUND"],
});

export const verifyKey = endpoint({
  name: "ai.keys.verify",
  tag: "ai",
  method: "POST",
  path: "/ai/keys/:providerKeyId/verify",
  summary: "Check a stored key with its provider",
  access,
  params: keyParams,
  response: one(ProviderKey),
  errors: ["PROVIDER_KEY_NOT_FOUND", "PROVIDER_ERROR", "PROVIDER_TIMEOUT", "PROVIDER_RATE_LIMITED"],
});
