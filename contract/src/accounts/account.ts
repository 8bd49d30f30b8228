import { z } from "zod";
import { plans } from "../commerce/plans.ts";
import { created, endpoint, json, listOf, one } from "../core/endpoint.ts";
import { Amount, Currency, paging, Timestamp } from "../core/envelope.ts";
import { type RolePermission, rolePermissions, roles } from "../core/permissions.ts";
import { visibleLine, visibleText } from "../core/visible-text.ts";
import { Country } from "./countries.ts";
import {
  Avatar,
  Handle,
  MAX_AVATAR_BYTES,
  MAX_PROFILE_LINKS,
  ProfileLink,
  ProfileLinks,
} from "./seller-profile.ts";

const refundDays = z.union([z.literal(0), z.literal(7), z.literal(14), z.literal(30)], {
  error: "must be 0, 7, 14 or 30",
});

const commissionBasisPoints = z
  .int()
  .min(0)
  .max(10_000)
  .describe("The commission of a referrer, as a part of your products' net price; a product can set its own");

export const AccountView = z
  .object({
    user: z.object({ id: z.string(), name: z.string() }).describe("The account that is viewed"),
    expiresAt: Timestamp,
    isOver: z
      .boolean()
      .describe("Your session reads as yourself again, and can change something once you end the view"),
  })
  .meta({ id: "AccountView", description: "An administrator's read-only view of another account." });

export const Account = z
  .object({
    id: z.string(),
    email: z.string(),
    name: z.string(),
    bio: z.string(),
    handle: z
      .string()
      .nullable()
      .describe("The name in the address of your public profile; null: not chosen yet"),
    avatar: Avatar.nullable(),
    links: z.array(ProfileLink),
    role: z.enum(roles),
    permissions: z
      .array(z.enum(rolePermissions.admin as readonly RolePermission[] as [RolePermission]))
      .describe("The permissions of the role"),
    plan: z.enum(plans),
    emailVerified: z.boolean().describe("Whether the email address is confirmed"),
    verified: z
      .boolean()
      .describe("Whether products show the badge of a verified author, which moderators assign"),
    twoFactor: z.object({ enabled: z.boolean() }),
    refundDays: refundDays.describe(
      "How many days after a purchase buyers of your products may request a refund",
    ),
    refundFailedRuns: z
      .boolean()
      .describe(
        "Whether the rules approve refunds of your prompts if the buyer's runs failed more often than those of other buyers, within the refund window and the limits of instant refunds",
      ),
    commissionBasisPoints,
    country: Country.nullable().describe(
      "The country that you buy from; it decides about taxes. null: not set",
    ),
    createdAt: Timestamp,
    view: AccountView.nullable().describe(
      "Set while an administrator's session views this account; null for everybody else",
    ),
  })
  .meta({ id: "Account" });

export const UpdateAccount = z
  .strictObject({
    name: visibleLine(100),
    bio: visibleText(2_000),
    handle: Handle.describe(
      "3 to 30 letters a to z, digits and single hyphens, stored in lower case. You choose it once; it is never given to another account",
    ),
    links: ProfileLinks.describe(
      `At most ${MAX_PROFILE_LINKS} https links on your public profile; the list replaces the present one`,
    ),
    refundDays: refundDays.describe("Applies to later purchases"),
    refundFailedRuns: z.boolean().describe("Applies to later requests"),
    commissionBasisPoints,
    country: Country.nullable(),
  })
  .partial()
  .meta({ id: "UpdateAccount" });

export const Session = z
  .object({
    id: z.string(),
    via: z.string().describe("How the person signed in: magic-link, password, github, google, operator"),
    secondFactor: z.boolean().describe("Whether the person signed in with two factors"),
    ip: z.string(),
    userAgent: z.string().nullable(),
    createdAt: Timestamp,
    lastSeenAt: Timestamp.describe("Up to five minutes old"),
    current: z.boolean().describe("Whether this request uses it"),
  })
  .meta({ id: "Session", description: "A browser or program that is signed in." });

export type AccountView = z.input<typeof AccountView>;
export type Account = z.input<typeof Account>;
export type UpdateAccount = z.output<typeof UpdateAccount>;
export type Session = z.input<typeof Session>;

const session = { who: "session" } as const;

export const get = endpoint({
  name: "account.get",
  method: "GET",
  path: "/account",
  summary: "Read your account",
  access: { who: "member", permission: null },
  response: one(Account),
});

export const update = endpoint({
  name: "account.update",
  method: "PATCH",
  path: "/account",
  summary: "Change your name, public profile, country or the terms of your sales",
  description:
    "Only the fields that you send change. Your products show a new name or handle at once. A handle cannot be changed once it is chosen (422), and one of another account is 409. Orders keep the terms and the country of their purchase.",
  access: session,
  request: json(UpdateAccount, {
    name: "Ada Lovelace",
    bio: "Prompts for engines of all kinds.",
    handle: "ada",
    links: [{ label: "Notes", url: "https://example.com/notes" }],
  }),
  response: one(Account),
  supportsIfMatch: true,
  errors: ["CONFLICT", "VALIDATION_ERROR"],
});

export const createAvatar = endpoint({
  name: "account.avatar.create",
  method: "POST",
  path: "/account/avatar",
  summary: "Set your avatar",
  description:
    "PNG, JPEG, WebP, GIF (its first frame) or AVIF, at most 5 MiB and 40 megapixels. The service encodes it again as WebP, at most 512 wide and high, without metadata. It replaces the present avatar, and your products show it at once.",
  access: session,
  request: { kind: "upload", maxBytes: MAX_AVATAR_BYTES, fields: z.strictObject({}), example: {} },
  response: created(Avatar),
});

export const deleteAvatar = endpoint({
  name: "account.avatar.delete",
  method: "DELETE",
  path: "/account/avatar",
  summary: "Remove your avatar",
  description: "Its URL is 404 at once. Succeeds too if you have none.",
  access: session,
  response: one(z.object({ removed: z.literal(true) })),
});

export const CloseAccount = z
  .strictObject({
    confirm: z.string().max(254).describe("The email address of the account, as a safeguard"),
    giveUpBalance: z
      .boolean()
      .default(false)
      .describe("Close the account although nobody can pay you the remaining money"),
  })
  .meta({ id: "CloseAccount" });

export type CloseAccount = z.output<typeof CloseAccount>;

export const close = endpoint({
  name: "account.close",
  method: "DELETE",
  path: "/account",
  summary: "Close your account permanently",
  description:
    "Send your own email address as `confirm`. All your sessions and API keys end, your products are no longer sold, and your name, email address and executions are deleted. Orders and their receipts stay for the accounts, and your buyers keep what they bought. The request is refused while a payment is open or while you owe money. The schedule pays your remaining money as it matures, also below the minimum, each time with an email. If there is no way to pay it, 409 names what is missing.",
  access: session,
  requiresFreshSignIn: true,
  request: json(CloseAccount, { confirm: "ada@example.com" }),
  response: one(
    z.object({
      id: z.string(),
      closed: z.literal(true),
      closedAt: Timestamp,
      toBePaid: z
        .array(z.object({ currency: Currency, amount: Amount }))
        .optional()
        .describe("What will still be paid to you, by currency; each payout sends an email"),
    }),
  ),
  errors: ["VALIDATION_ERROR", "INVALID_STATE"],
});

export const identityProviders = ["github", "google"] as const;

export const SignInProviders = z
  .object({
    providers: z.array(
      z.object({
        provider: z.enum(identityProviders),
        available: z.boolean().describe("Whether this installation offers to sign in with it"),
        linkedAt: Timestamp.nullable().describe(
          "Since when an account there can sign in to yours; null: not linked. To link it, sign in with an account there that has your email address",
        ),
      }),
    ),
  })
  .meta({ id: "SignInProviders" });

export type SignInProviders = z.input<typeof SignInProviders>;

export const signInProviders = endpoint({
  name: "account.signInProviders.list",
  method: "GET",
  path: "/account/sign-in-providers",
  summary: "List the providers that can sign you in",
  access: session,
  response: one(SignInProviders),
});

export const unlinkProvider = endpoint({
  name: "account.signInProviders.unlink",
  method: "DELETE",
  path: "/account/sign-in-providers/:provider",
  summary: "Unlink a provider, so that it no longer signs you in",
  description:
    "Ends your other sessions that began with it, and sends you an email. You can still sign in by an emailed link. A later sign-in there with your email address links it again.",
  access: session,
  requiresFreshSignIn: true,
  params: z.object({ provider: z.string().describe("`github` or `google`") }),
  response: one(z.object({ provider: z.enum(identityProviders), sessionsEnded: z.int() })),
  errors: ["SIGN_IN_PROVIDER_NOT_FOUND"],
});

export const sessions = endpoint({
  name: "account.sessions.list",
  method: "GET",
  path: "/account/sessions",
  summary: "List your sessions, newest first",
  access: session,
  query: z.strictObject(paging),
  response: listOf(Session),
});

export const endOthers = endpoint({
  name: "account.sessions.deleteOthers",
  method: "DELETE",
  path: "/account/sessions",
  summary: "End all your other sessions",
  access: session,
  response: one(z.object({ ended: z.int().describe("Number of ended sessions") })),
});

export const endSession = endpoint({
  name: "account.sessions.delete",
  method: "DELETE",
  path: "/account/sessions/:sessionId",
  summary: "End one of your sessions, which may be the present one",
  access: session,
  params: z.object({ sessionId: z.string() }),
  response: one(z.object({ id: z.string(), ended: z.literal(true) })),
  errors: ["SESSION_NOT_FOUND"],
});
