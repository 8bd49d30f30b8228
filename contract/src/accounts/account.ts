import { z } from "zod";
import { plans } from "../commerce/plans.ts";
import { endpoint } from "../core/endpoint.ts";
import { Amount, Currency, paging, Timestamp } from "../core/envelope.ts";
import { type RolePermission, rolePermissions, roles } from "../core/permissions.ts";
import { visibleLine, visibleText } from "../core/visible-text.ts";
import { Country } from "./countries.ts";

const refundDays = z.union([z.literal(0), z.literal(7), z.literal(14), z.literal(30)], {
  error: "must be 0, 7, 14 or 30",
});

const commissionBasisPoints = z
  .int()
  .min(0)
  .max(10_000)
  .describe("What a referrer gets of your products' net price, from your part; a product may say otherwise");

export const Account = z
  .object({
    id: z.string(),
    email: z.string(),
    name: z.string(),
    bio: z.string(),
    role: z.enum(roles),
    permissions: z
      .array(z.enum(rolePermissions.admin as readonly RolePermission[] as [RolePermission]))
      .describe("What the role may do"),
    plan: z.enum(plans),
    emailVerified: z.boolean().describe("Whether the mailbox is proven"),
    verified: z
      .boolean()
      .describe("Whether products show the badge of a verified author, which moderators give"),
    twoFactor: z.object({ enabled: z.boolean() }),
    refundDays: refundDays.describe("How long buyers of your products may ask for their money back"),
    commissionBasisPoints,
    country: Country.nullable().describe("Where you buy from, which decides about taxes; null: not said"),
    createdAt: Timestamp,
  })
  .meta({ id: "Account" });

export const ChangeAccount = z
  .strictObject({
    name: visibleLine(100),
    bio: visibleText(2_000),
    refundDays: refundDays.describe("Holds for what is bought from now on"),
    commissionBasisPoints,
    country: Country.nullable(),
  })
  .partial()
  .meta({ id: "ChangeAccount" });

export const Session = z
  .object({
    id: z.string(),
    via: z.string().describe("How it was entered: magic-link, password, github, google, operator"),
    secondFactor: z.boolean().describe("Whether it was entered with two factors"),
    ip: z.string(),
    userAgent: z.string().nullable(),
    createdAt: Timestamp,
    lastSeenAt: Timestamp.describe("Up to five minutes old"),
    current: z.boolean().describe("Whether it is the one that asks"),
  })
  .meta({ id: "Session", description: "A place where you are signed in." });

export type Account = z.input<typeof Account>;
export type ChangeAccount = z.output<typeof ChangeAccount>;
export type Session = z.input<typeof Session>;

const session = { who: "session" } as const;

export const get = endpoint({
  name: "account.get",
  method: "GET",
  path: "/account",
  summary: "Read your account",
  access: { who: "member", permission: null },
  data: Account,
});

export const change = endpoint({
  name: "account.change",
  method: "PATCH",
  path: "/account",
  summary: "Change your name, your words about yourself, your country or the terms of your sales",
  description:
    "Only what you send changes. Your products show a new name at once. Orders keep the terms and the country that they were made with.",
  access: session,
  body: ChangeAccount,
  data: Account,
  conditional: true,
  example: { name: "Ada Lovelace", bio: "Prompts for engines of all kinds." },
});

export const CloseAccount = z
  .strictObject({
    confirm: z.string().max(254).describe("The address of the account, as a safeguard"),
    giveUpBalance: z
      .boolean()
      .default(false)
      .describe("Close it though money is left that nobody could pay you"),
  })
  .meta({ id: "CloseAccount" });

export type CloseAccount = z.output<typeof CloseAccount>;

export const close = endpoint({
  name: "account.close",
  method: "DELETE",
  path: "/account",
  summary: "Close your account for good",
  description:
    "Needs your own address as `confirm`. You are signed out everywhere, your keys stop working, your products go off sale, and your name, your address and what you ran are forgotten. Orders and their receipts stay for the books, and your buyers keep what they bought. Refused while a payment is open, and while you owe anything. What is yours and not paid out yet is paid by the marketplace's schedule as it matures, the last of it however little, each with an email; where there is no way to pay it, 409 says what is missing.",
  access: session,
  freshSignIn: true,
  body: CloseAccount,
  data: z.object({
    id: z.string(),
    closed: z.literal(true),
    closedAt: Timestamp,
    toBePaid: z
      .array(z.object({ currency: Currency, amount: Amount }))
      .optional()
      .describe("What is still paid to you, by currency, if anything; each payout sends an email"),
  }),
  errors: ["VALIDATION_ERROR", "INVALID_STATE"],
  example: { confirm: "ada@example.com" },
});

export const sessions = endpoint({
  name: "account.sessions.list",
  method: "GET",
  path: "/account/sessions",
  summary: "List where you are signed in, newest first",
  access: session,
  query: z.strictObject(paging),
  data: Session,
  list: true,
});

export const endOthers = endpoint({
  name: "account.sessions.deleteOthers",
  method: "DELETE",
  path: "/account/sessions",
  summary: "Sign out everywhere but here",
  access: session,
  data: z.object({ ended: z.int().describe("How many sessions were ended") }),
});

export const endSession = endpoint({
  name: "account.sessions.delete",
  method: "DELETE",
  path: "/account/sessions/:sessionId",
  summary: "End one of your sessions, the present one too",
  access: session,
  params: z.object({ sessionId: z.string() }),
  data: z.object({ id: z.string(), ended: z.literal(true) }),
  errors: ["SESSION_NOT_FOUND"],
});
