import { z } from "zod";

export const SignedRunReceipt = z
  .object({
    receipt: z.string().describe("A JWS (RFC 7515) whose payload is a RunReceipt, signed with Ed25519"),
    salt: z
      .string()
      .nullable()
      .describe("Base64url. With it and a text, anybody can check that the receipt is about that text"),
    keysUrl: z.string().describe("The public keys of this marketplace (JWKS)"),
  })
  .meta({ id: "SignedRunReceipt" });

export type SignedRunReceipt = z.input<typeof SignedRunReceipt>;
