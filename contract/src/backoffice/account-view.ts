import { z } from "zod";
import { AccountView } from "../accounts/account.ts";
import { endpoint, json, one } from "../core/endpoint.ts";
import { visibleText } from "../core/visible-text.ts";

export const ACCOUNT_VIEW_MINUTES = 30;

export const StartAccountView = z
  .strictObject({
    userId: z.string().max(100).describe("The account to view, which is no administrator's"),
    reason: visibleText(500).min(1).describe("Stored in the audit log; the owner does not see it"),
  })
  .meta({ id: "StartAccountView" });

export type StartAccountView = z.output<typeof StartAccountView>;

export const start = endpoint({
  name: "admin.view.start",
  method: "PUT",
  path: "/admin/view",
  summary: "View the marketplace as another account, read-only",
  description: `For ${ACCOUNT_VIEW_MINUTES} minutes, your session reads what this account reads, and every change is refused. Secrets and private texts stay hidden: keys, sessions, second factor, payment methods, webhooks, request logs, runs, contents and files. The audit log has an entry, and the owner gets a notification. Until you end the view, your session can change nothing, also after these minutes.`,
  access: { who: "admin" },
  request: json(StartAccountView, {
    userId: "usr_01k3v8m2qzf8a9b7c6d5e4f3g2",
    reason: "Asked us by mail why a payout is missing",
  }),
  response: one(AccountView),
  errors: ["USER_NOT_FOUND", "INVALID_STATE", "VALIDATION_ERROR"],
});

export const end = endpoint({
  name: "admin.view.end",
  method: "DELETE",
  path: "/admin/view",
  summary: "End the view of another account",
  description: "Your session acts as yourself again.",
  access: { who: "session" },
  response: one(z.object({ ended: z.literal(true) })),
  errors: ["INVALID_STATE"],
});
