import { bankPage, notFoundPage } from "./html-pages.ts";
import { type Call, type Endpoint, page, type Reply, readText, redirect } from "./http.ts";
import { endDispute, movePayout, moveRefund } from "./transfers.ts";

const FAILED = { state: "failed", failureCode: "declined_by_bank" } as const;

type Decision = (call: Call) => Promise<unknown>;

/** The buttons by the decided object. */
const decisions: Record<string, Record<string, Decision>> = {
  disputes: {
    won: ({ provider, id }) => endDispute(provider, id, "won"),
    lost: ({ provider, id }) => endDispute(provider, id, "lost"),
  },
  refunds: {
    succeeded: ({ provider, id }) => moveRefund(provider, id, { state: "succeeded" }),
    failed: ({ provider, id }) => moveRefund(provider, id, FAILED),
  },
  payouts: {
    completed: ({ provider, id }) => movePayout(provider, id, { state: "completed" }),
    failed: ({ provider, id }) => movePayout(provider, id, FAILED),
  },
};

/** A page on which a tester decides in place of a bank. */
export const bankEndpoints: Endpoint[] = [
  ["GET", /^\/$/, showBankPage],
  ...Object.entries(decisions).map(
    ([noun, buttons]): Endpoint => [
      "POST",
      new RegExp(`^/${noun}/([^/]+)$`),
      (call) => decide(call, buttons),
    ],
  ),
];

async function showBankPage({ provider }: Call): Promise<Reply> {
  const undecided = await provider.store.listUndecided();
  return page(
    200,
    bankPage(undecided, (path) => provider.pageUrl(path).pathname),
  );
}

async function decide(call: Call, buttons: Record<string, Decision>): Promise<Reply> {
  const pressed = new URLSearchParams(await readText(call.request)).get("decision") ?? "";
  if (!Object.hasOwn(buttons, pressed)) return page(400, notFoundPage());
  return (await buttons[pressed]!(call))
    ? redirect(call.provider.pageUrl("").pathname)
    : page(404, notFoundPage());
}
