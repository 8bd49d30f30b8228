import { z } from "zod";
import { created, endpoint, json, one } from "../core/endpoint.ts";
import { Timestamp } from "../core/envelope.ts";

/** Spaces, dashes and case are ignored. */
const Code = z
  .string()
  .min(6)
  .max(64)
  .describe("Six digits of your authenticator app, or one of your backup codes");

const BackupCodes = z.object({
  backupCodes: z
    .array(z.string())
    .length(10)
    .describe("Each works once in place of an app code. Shown only in this response"),
});

const signedIn = { who: "session" } as const;

export const state = endpoint({
  name: "twoFactor.get",
  tag: "account",
  method: "GET",
  path: "/account/two-factor",
  summary: "Read whether two-factor authentication is on",
  access: signedIn,
  response: one(
    z
      .object({
        enabled: z.boolean(),
        confirmedAt: Timestamp.nullable(),
        backupCodesLeft: z.int().min(0).max(10),
      })
      .meta({ id: "TwoFactorState" }),
  ),
});

export const setUp = endpoint({
  name: "twoFactor.setUp",
  tag: "account",
  method: "POST",
  path: "/account/two-factor",
  summary: "Set up an authenticator app",
  description:
    "Sign-in does not change until the app is confirmed. A second request before that replaces the secret.",
  access: signedIn,
  requiresFreshSignIn: true,
  response: created(
    z
      .object({
        secret: z.string().describe("Base32, for an app that cannot scan"),
        otpauthUri: z.string().describe("The content of the QR code"),
        qrCode: z.string().describe("A data: URL of an SVG image"),
      })
      .meta({ id: "TwoFactorSetUp" }),
  ),
  showsSecret: true,
  errors: ["INVALID_STATE"],
});

export const confirm = endpoint({
  name: "twoFactor.confirm",
  tag: "account",
  method: "POST",
  path: "/account/two-factor/confirm",
  summary: "Turn two-factor authentication on with a code of the new app",
  description:
    "From now on every sign-in needs a code. All other sessions end; this one counts as signed in with two factors.",
  access: signedIn,
  request: json(z.strictObject({ code: Code }).meta({ id: "ConfirmTwoFactor" }), { code: "123456" }),
  response: one(BackupCodes),
  showsSecret: true,
  errors: ["INVALID_STATE", "VALIDATION_ERROR"],
});

export const renewBackupCodes = endpoint({
  name: "twoFactor.renewBackupCodes",
  tag: "account",
  method: "POST",
  path: "/account/two-factor/backup-codes",
  summary: "Create ten new backup codes; the old ones stop working",
  access: signedIn,
  request: json(z.strictObject({ code: Code }).meta({ id: "RegenerateBackupCodes" }), { code: "123456" }),
  response: one(BackupCodes),
  showsSecret: true,
  errors: ["INVALID_STATE", "VALIDATION_ERROR"],
});

export const disable = endpoint({
  name: "twoFactor.disable",
  tag: "account",
  method: "DELETE",
  path: "/account/two-factor",
  summary: "Turn two-factor authentication off",
  description:
    "Needs a code, and the account's password or a sign-in of the last 15 minutes. After that no session counts as signed in with two factors.",
  access: signedIn,
  request: json(
    z
      .strictObject({
        code: Code,
        password: z
          .string()
          .min(1)
          .max(200)
          .optional()
          .describe("Not needed within 15 minutes after a sign-in"),
      })
      .meta({ id: "DisableTwoFactor" }),
    { code: "123456" },
  ),
  response: one(z.object({ enabled: z.literal(false) })),
  errors: ["INVALID_STATE", "VALIDATION_ERROR"],
});
