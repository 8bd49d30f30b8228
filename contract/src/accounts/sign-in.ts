import { z } from "zod";
import { endpoint, json, one } from "../core/endpoint.ts";
import { visibleLine } from "../core/visible-text.ts";
import { Address } from "./address.ts";

const access = { who: "public" } as const;
const signInEndpoint = { base: "/api/auth", tag: "sign-in", method: "POST", access } as const;

export const MIN_PASSWORD = 8;
const MAX_PASSWORD = 200;

export const NewPassword = z
  .string()
  .min(MIN_PASSWORD, `must have at least ${MIN_PASSWORD} characters`)
  .max(MAX_PASSWORD, `must have at most ${MAX_PASSWORD} characters`)
  .describe(
    "Any characters. The most common passwords are refused, and those with fewer than 8 characters besides your name, email address and the name of this service",
  );
const GivenPassword = z.string().min(1).max(MAX_PASSWORD, `must have at most ${MAX_PASSWORD} characters`);
const Code = z.string().min(1).max(64).describe("A code of your authenticator app, or a backup code");

const EmailSent = z
  .object({
    message: z.string(),
    lifetimeSeconds: z.int().describe("How long the link in the email works"),
  })
  .meta({ id: "EmailSent" });

const SignedIn = z
  .object({ sessionToken: z.string().describe("Also beside data, and in the cookie __Host-session") })
  .meta({ id: "SignedIn" });

export const SendMagicLink = z.strictObject({ email: Address }).meta({ id: "SendMagicLink" });

export const magicLink = endpoint({
  ...signInEndpoint,
  name: "signIn.magicLink",
  path: "/magic-link",
  summary: "Request a sign-in link by email",
  description:
    "The response is the same for every address; the first use of a link creates the account. An address gets one link in 30 seconds, 5 in 15 minutes and 20 a day. A browser in which its owner signed in before has separate limits of the same size.",
  request: json(SendMagicLink, { email: "ada@example.com" }),
  response: one(EmailSent),
});

export const VerifyToken = z
  .strictObject({
    token: z.string().describe("The value after #token= in the link"),
    registrationSecret: z
      .string()
      .max(200)
      .optional()
      .describe(
        "For a registration by a program without cookies: the value from the POST /register response. Without it and without the cookie __Host-registration, the account starts without the password",
      ),
  })
  .meta({ id: "VerifyToken" });

export const verify = endpoint({
  ...signInEndpoint,
  name: "signIn.verify",
  path: "/verify",
  summary: "Sign in with the token of an emailed link",
  description:
    "A token works once, for 10 minutes. Accounts with two-factor authentication get TWO_FACTOR_REQUIRED with `details.challenge`.",
  request: json(VerifyToken, { token: "dGhpcyBpcyBub3QgYSByZWFsIHRva2VuLCBvZiBjb3Vyc2U" }),
  response: one(SignedIn),
  errors: ["INVALID_TOKEN", "TWO_FACTOR_REQUIRED"],
});

export const Register = z
  .strictObject({
    email: Address,
    password: NewPassword,
    name: visibleLine(100),
  })
  .meta({ id: "Register" });

export const register = endpoint({
  ...signInEndpoint,
  name: "signIn.register",
  path: "/register",
  summary: "Register with a password",
  description:
    "The account is created when the link in the email is used. The password is valid only if the registration is confirmed in the same browser, or by a program that returns `registrationSecret`. The response is the same for every address.",
  request: json(Register, {
    email: "ada@example.com",
    password: "correct horse battery staple",
    name: "Ada",
  }),
  response: one(
    EmailSent.extend({
      registrationSecret: z
        .string()
        .describe(
          "Send it to POST /verify with the token of the email, to keep the password. The cookie __Host-registration has the same value",
        ),
    }).meta({ id: "RegistrationSent" }),
  ),
});

export const LogIn = z
  .strictObject({ email: Address, password: GivenPassword, code: Code.optional() })
  .meta({ id: "LogIn" });

export const logIn = endpoint({
  ...signInEndpoint,
  name: "signIn.logIn",
  path: "/login",
  summary: "Sign in with a password",
  description:
    "Accounts with two-factor authentication need `code`, or get TWO_FACTOR_REQUIRED with `details.challenge`. After 10 wrong passwords in 15 minutes the email address must wait, or use an emailed link.",
  request: json(LogIn, { email: "ada@example.com", password: "correct horse battery staple" }),
  response: one(SignedIn),
  errors: ["INVALID_CREDENTIALS", "TWO_FACTOR_REQUIRED"],
});

export const VerifyTwoFactor = z
  .strictObject({ challenge: z.string().describe("From the TWO_FACTOR_REQUIRED response"), code: Code })
  .meta({ id: "VerifyTwoFactor" });

export const twoFactor = endpoint({
  ...signInEndpoint,
  name: "signIn.twoFactor",
  path: "/two-factor",
  summary: "Finish a sign-in with a code",
  description: "A challenge works for 5 minutes. After a wrong code you can try again; a right one ends it.",
  request: json(VerifyTwoFactor, {
    challenge: "bm90IGEgcmVhbCBjaGFsbGVuZ2UgZWl0aGVyLCBvZiBjb3U",
    code: "123456",
  }),
  response: one(SignedIn),
  errors: ["INVALID_TOKEN", "INVALID_CREDENTIALS"],
});

export const logOut = endpoint({
  ...signInEndpoint,
  name: "signIn.logOut",
  path: "/logout",
  summary: "Sign out",
  description:
    "Ends the session of the Authorization header, or else of the cookie, and always deletes the cookie.",
  response: one(z.object({ signedOut: z.literal(true) })),
  errors: ["INVALID_SESSION"],
});

export const ChangePassword = z
  .strictObject({
    password: NewPassword,
    currentPassword: GivenPassword.optional().describe("Not needed within 15 minutes after a sign-in"),
    revokeAccess: z
      .boolean()
      .default(false)
      .describe(
        "Also revoke all API keys, all grants of applications, and the secrets of your OAuth clients. Use it if another person may have had access to your account",
      ),
  })
  .meta({ id: "ChangePassword" });

export const updatePassword = endpoint({
  name: "account.password.update",
  tag: "account",
  method: "PUT",
  path: "/account/password",
  summary: "Set or change your password",
  description:
    "Ends all your other sessions at once. API keys, grants and OAuth clients stay valid, unless revokeAccess is true.",
  access: { who: "session" },
  request: json(ChangePassword, {
    password: "correct horse battery staple",
    currentPassword: "the old horse",
  }),
  response: one(
    z.object({
      sessionsEnded: z.int().describe("Number of ended other sessions"),
      keysRevoked: z.int().describe("Number of revoked API keys"),
      grantsRevoked: z.int().describe("Number of applications that lost their grant"),
      clientSecretsRevoked: z
        .int()
        .describe(
          "Number of your OAuth clients that need a new secret, by POST /oauth-clients/{id}/rotate-secret",
        ),
    }),
  ),
  errors: ["VALIDATION_ERROR"],
});

export type VerifyToken = z.output<typeof VerifyToken>;
export type Register = z.output<typeof Register>;
export type LogIn = z.output<typeof LogIn>;
export type VerifyTwoFactor = z.output<typeof VerifyTwoFactor>;
export type ChangePassword = z.output<typeof ChangePassword>;
