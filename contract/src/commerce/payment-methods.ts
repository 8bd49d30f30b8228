import { z } from "zod";
import { created, endpoint, json, listOf, one } from "../core/endpoint.ts";
import { paging, Timestamp } from "../core/envelope.ts";

export const PaymentMethod = z
  .object({
    id: z.string().describe("Send it as paymentMethodId"),
    brand: z.string(),
    last4: z.string(),
    isDefault: z.boolean().describe("Pays if no other method is named"),
    createdAt: Timestamp.nullable().describe(
      "null: a method of the test environment, which all accounts have and cannot remove",
    ),
  })
  .meta({ id: "PaymentMethod" });

export const AddPaymentMethod = z
  .strictObject({
    token: z
      .string()
      .min(1)
      .max(255)
      .describe(
        "The token or id that the payment provider gave the browser for the card, or the `card` with which its page for cards redirected the browser",
      ),
  })
  .meta({ id: "AddPaymentMethod" });

export const StartCardSetup = z
  .strictObject({
    returnTo: z
      .string()
      .max(500)
      .regex(/^\/(?!\/)[\w\-.~%/?=&,:+*]*$/)
      .default("/account/payment-methods")
      .describe(
        "The path of this website to which the provider's page redirects, with `card` added to the query",
      ),
  })
  .meta({ id: "StartCardSetup" });

export const CardSetup = z
  .object({
    url: z.url().describe("The payment provider's page, for one card; it ends after a day"),
  })
  .meta({ id: "CardSetup" });

export type CardSetup = z.input<typeof CardSetup>;
export type PaymentMethod = z.input<typeof PaymentMethod>;

const tag = "payment-methods";
const writes = { who: "member", permission: "purchases:write" } as const;
const params = z.object({ methodId: z.string() });

export const list = endpoint({
  name: "paymentMethods.list",
  tag,
  method: "GET",
  path: "/payment-methods",
  summary: "List your payment methods, newest first",
  description: "In a test environment its shared methods come last.",
  access: writes,
  query: z.strictObject(paging),
  response: listOf(PaymentMethod),
});

export const create = endpoint({
  name: "paymentMethods.create",
  tag,
  method: "POST",
  path: "/payment-methods",
  summary: "Store a payment method",
  description:
    "Card data goes from the browser to the payment provider only; send the token that it returns. The first method becomes the default, unless the environment has one. An account can have 10; the 11th is 422.",
  access: writes,
  request: json(AddPaymentMethod, { token: "pm_test_ok" }),
  response: created(PaymentMethod),
  errors: ["PAYMENT_METHOD_NOT_FOUND", "VALIDATION_ERROR"],
});

export const startSetup = endpoint({
  name: "paymentMethods.startSetup",
  tag,
  method: "POST",
  path: "/payment-methods/setup",
  summary: "Open the payment provider's page for a card",
  description:
    "The buyer enters the card there, and is redirected to `returnTo` with `card` in the query. Send that as the `token` of `POST /payment-methods`. A buyer who returns without it has entered none.",
  access: writes,
  request: json(StartCardSetup, { returnTo: "/account/payment-methods" }),
  response: one(CardSetup),
});

export const deleteMethod = endpoint({
  name: "paymentMethods.delete",
  tag,
  method: "DELETE",
  path: "/payment-methods/:methodId",
  summary: "Remove a payment method",
  description:
    "If it was the default, there is none until you choose one, or the default of the environment.",
  access: writes,
  params,
  response: one(z.object({ id: z.string(), deleted: z.literal(true) })),
  errors: ["PAYMENT_METHOD_NOT_FOUND", "VALIDATION_ERROR"],
});

export const setDefault = endpoint({
  name: "paymentMethods.setDefault",
  tag,
  method: "POST",
  path: "/payment-methods/:methodId/default",
  summary: "Make a payment method the default",
  access: writes,
  params,
  response: one(PaymentMethod),
  errors: ["PAYMENT_METHOD_NOT_FOUND"],
});
