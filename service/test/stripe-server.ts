import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { StripeReferences } from "../src/integrations/payments/stripe-references.ts";

/**
 * The part of Stripe's protocol that we use: form-encoded requests, idempotency keys, expanded objects, its error
 * format. A method's name tells the result of its charges, as with Stripe's test methods.
 */
export interface StripeServer {
  url: string;
  /** All requests, oldest first: "POST /v1/refunds". */
  asked: string[];
  /** The current object. */
  objectOf(id: string): StripeObject;
  /** Answers as if another request with the same key were running, until called with null. */
  isBusy(path: RegExp | null): void;
  /** The next answer is lost after the request took effect. */
  loseAnswer(path: RegExp): void;
  /** The account's owner completes the onboarding. */
  finishOnboarding(accountId: string): void;
  /** The buyer enters a card on Stripe's page, which leads the browser to the result. */
  enterCard(sessionId: string, token: string): string;
  /** The marketplace's balance for transfers; unlimited by default. */
  hasFunds(amount: number): void;
  /** A change that we did not request. */
  change(id: string, change: StripeObject): void;
  /** The buyer approves at their bank. */
  approve(intentId: string): void;
  /** Of the whole charge by default. */
  openDispute(intentId: string, fields?: { status?: string; amount?: number }): string;
  closeDispute(disputeId: string, status: string): void;
  /** A refund from Stripe's dashboard; with some methods it takes days. */
  refundByHand(intentId: string, amount: number, status?: "pending" | "succeeded"): string;
  /** A charge by another program with the same account. Returns its id. */
  payElsewhere(amount: number): string;
  intentsOf(orderId: string): StripeObject[];
  close(): Promise<void>;
}

// biome-ignore lint/suspicious/noExplicitAny: objects of another company's, as they come
type StripeObject = Record<string, any>;

class Refusal extends Error {
  readonly status: number;
  readonly error: StripeObject;
  constructor(status: number, error: StripeObject) {
    super(error["code"]);
    this.status = status;
    this.error = error;
  }
}

const missing = (what: string) =>
  new Refusal(404, { type: "invalid_request_error", code: "resource_missing", message: `No such ${what}` });

const refused = (message: string, code?: string) =>
  new Refusal(400, { type: "invalid_request_error", message, ...(code && { code }) });

const STILL_RUNNING = {
  type: "invalid_request_error",
  code: "idempotency_key_in_use",
  message: "There is currently another in-progress request using this Idempotent Key.",
};

const declined = (why: string) =>
  new Refusal(402, {
    type: "card_error",
    code: why === "authentication_required" ? why : "card_declined",
    decline_code: why,
    message: `Your card was declined: ${why}.`,
  });

/** Parses `a[b][0]=c` as Stripe does. */
function parseForm(body: string): StripeObject {
  const parsed: StripeObject = {};
  for (const [name, value] of new URLSearchParams(body)) {
    const path = name.split(/[[\]]+/).filter(Boolean);
    let at = parsed;
    for (const [index, step] of path.entries()) {
      if (index === path.length - 1) at[step] = value;
      else at = at[step] ??= {};
    }
  }
  return parsed;
}

/** The bank's deadline for evidence in a dispute. */
const DISPUTE_DUE_SECONDS = Date.parse("2026-07-01T23:59:59Z") / 1000;

/** Test tokens of docs.stripe.com/testing. Each attach creates a new method. */
const TOKENS: Record<string, { brand: string; last4: string }> = {
  pm_card_visa: { brand: "visa", last4: "4242" },
  pm_card_chargeDeclinedInsufficientFunds: { brand: "visa", last4: "9995" },
  // Its bank requires authentication each time.
  pm_card_authenticationRequired: { brand: "visa", last4: "3184" },
  // Its bank requires authentication until the method is set up for off-session payments.
  pm_card_authenticationRequiredOnSetup: { brand: "visa", last4: "3155" },
  pm_card_refundFail: { brand: "visa", last4: "5126" },
};

/** So small that a test with a few objects reads several pages. */
const PAGE_SIZE = 3;

export async function startStripeServer(
  secretKey: string,
  now: () => Date = () => new Date(),
): Promise<StripeServer> {
  const objects = new Map<string, StripeObject>();
  const replies = new Map<string, { asked: string; status: number; body: StripeObject }>();
  const asked: string[] = [];
  let lost: RegExp | null = null;
  let busy: RegExp | null = null;
  let count = 0;
  let funds = Number.POSITIVE_INFINITY;
  const make = (prefix: string, object: StripeObject) => {
    const created = Math.floor(now().getTime() / 1000);
    const made: StripeObject = { created, ...object, id: `${prefix}_${++count}` };
    objects.set(made["id"], made);
    return made;
  };
  const get = (id: string, what: string) => objects.get(id) ?? raise(missing(what));
  const all = (kind: string) => [...objects.values()].filter(({ object }) => object === kind);
  /** A page of objects since a time, newest first. */
  const list = (data: StripeObject[], form: StripeObject = {}) => {
    const since = Number(form["created"]?.gte ?? 0);
    const found = data.filter(({ created }) => created >= since).reverse();
    const start = found.findIndex(({ id }) => id === form["starting_after"]) + 1;
    const rows = found.slice(start, start + PAGE_SIZE);
    return { object: "list", data: rows, has_more: start + PAGE_SIZE < found.length, url: "/v1" };
  };
  const withIntent = (one: StripeObject) => ({
    ...one,
    payment_intent: get(one["payment_intent"], "PaymentIntent"),
  });

  /** By its token, or by the id after attaching it. */
  const methodOf = (id: string): StripeObject =>
    TOKENS[id]
      ? { id, token: id, object: "payment_method", customer: null, card: TOKENS[id] }
      : id.startsWith("pm_")
        ? get(id, "PaymentMethod")
        : raise(missing("PaymentMethod"));

  function attach(id: string, customer: string) {
    const method = methodOf(id);
    if (method["token"].includes("Attach")) throw declined("generic_decline");
    if (TOKENS[id]) return make("pm", { ...method, customer });
    if (method["detached"])
      throw refused(
        "The provided PaymentMethod was detached from a Customer. It may not be used again.",
        "payment_method_unexpected_state",
      );
    if (method["customer"])
      throw refused("The payment method you provided has already been attached to a customer.");
    return Object.assign(method, { customer });
  }

  function detach(id: string) {
    const method = get(id, "PaymentMethod");
    if (!method["customer"])
      throw refused(
        "The payment method you provided is not attached to a customer so detachment is impossible.",
      );
    return Object.assign(method, { customer: null, detached: true });
  }

  function intentReply(intent: StripeObject) {
    return {
      ...intent,
      payment_method: intent["payment_method"] && methodOf(intent["payment_method"]),
      latest_charge: intent["fee"] !== undefined && {
        id: "ch_1",
        refunded: intent["refunded"] ?? false,
        balance_transaction: { fee: intent["fee"], currency: intent["currency"] },
      },
    };
  }

  function confirm(intent: StripeObject, form: StripeObject) {
    const { token, isSetUp } = methodOf(intent["payment_method"]);
    const asks =
      token === "pm_card_authenticationRequired" ||
      (token === "pm_card_authenticationRequiredOnSetup" && !isSetUp);
    if (asks && form["off_session"] === "true") decline(intent, "authentication_required");
    if (asks) {
      intent["status"] = "requires_action";
      intent["next_action"] = {
        type: "redirect_to_url",
        redirect_to_url: {
          url: `https://hooks.stripe.example/3ds?back=${encodeURIComponent(form["return_url"])}`,
        },
      };
      return intentReply(intent);
    }
    if (token.includes("Declined")) decline(intent, "insufficient_funds");
    succeed(intent);
    return intentReply(intent);
  }

  /** An off-session payment that needs authentication has its own code. */
  function decline(intent: StripeObject, why: string): never {
    const refusal = declined(why);
    intent["status"] = "requires_payment_method";
    intent["last_payment_error"] = {
      ...refusal.error,
      payment_method: methodOf(intent["payment_method"]),
    };
    intent["payment_method"] = null;
    throw refusal;
  }

  function succeed(intent: StripeObject) {
    intent["status"] = "succeeded";
    intent["amount_received"] = intent["amount"];
    intent["next_action"] = null;
    intent["fee"] = Math.round(intent["amount"] * 0.029) + 30;
    if (intent["setup_future_usage"] === "off_session") methodOf(intent["payment_method"])["isSetUp"] = true;
  }

  function refund(form: StripeObject) {
    const intent = get(form["payment_intent"], "PaymentIntent");
    const amount = Number(form["amount"]);
    const refunded = all("refund")
      .filter((one) => one["payment_intent"] === intent["id"] && one["status"] !== "failed")
      .reduce((sum, one) => sum + one["amount"], 0);
    if (refunded + amount > intent["amount"])
      throw new Refusal(400, { type: "invalid_request_error", code: "charge_already_refunded" });
    const fails = methodOf(intent["payment_method"])["token"] === "pm_card_refundFail";
    if (refunded + amount === intent["amount"]) intent["refunded"] = true;
    return make("re", {
      object: "refund",
      amount,
      currency: intent["currency"],
      payment_intent: intent["id"],
      metadata: form["metadata"],
      status: fails ? "failed" : "succeeded",
      failure_reason: fails ? "expired_or_canceled_card" : undefined,
    });
  }

  const endpoints: [string, RegExp, (form: StripeObject, id: string) => StripeObject][] = [
    ["POST", /^\/v1\/customers$/, (form) => make("cus", { object: "customer", ...form })],
    [
      "POST",
      /^\/v1\/payment_intents$/,
      (form) => {
        const owner = methodOf(form["payment_method"])["customer"];
        const { currency, customer, payment_method, setup_future_usage = null, metadata } = form;
        if (owner && owner !== customer) throw missing("PaymentMethod");
        const amount = Number(form["amount"]);
        return make("pi", {
          ...{ object: "payment_intent", status: "requires_confirmation", amount_received: 0 },
          ...{ amount, currency, customer, payment_method, setup_future_usage, metadata },
        });
      },
    ],
    ["GET", /^\/v1\/payment_intents\/(\w+)$/, (_form, id) => intentReply(get(id, "PaymentIntent"))],
    [
      "POST",
      /^\/v1\/payment_intents\/(\w+)\/confirm$/,
      (form, id) => confirm(get(id, "PaymentIntent"), form),
    ],
    [
      "POST",
      /^\/v1\/payment_intents\/(\w+)\/cancel$/,
      (_form, id) => intentReply(Object.assign(get(id, "PaymentIntent"), { status: "canceled" })),
    ],
    // Capabilities are enabled only after the onboarding; the platform's settings request them.
    [
      "POST",
      /^\/v1\/accounts$/,
      ({ type, metadata }) =>
        make("acct", {
          ...{ object: "account", type, metadata, payouts_enabled: false, charges_enabled: false },
          ...{ details_submitted: false, capabilities: { transfers: "inactive" } },
          requirements: {
            ...{ currently_due: ["external_account", "individual.verification.document"] },
            ...{ past_due: ["external_account"], pending_verification: ["individual.address.city"] },
            ...{ disabled_reason: "requirements.past_due", current_deadline: Date.UTC(2030, 0, 1) / 1_000 },
            errors: [{ requirement: "individual.verification.document", reason: "The document is expired." }],
          },
        }),
    ],
    [
      "GET",
      /^\/v1\/accounts\/(\w+)$/,
      (_form, id) =>
        objects.get(id) ??
        raise(
          new Refusal(403, {
            ...{ type: "invalid_request_error", code: "account_invalid" },
            message: `The provided key does not have access to account '${id}' (or that account does not exist).`,
          }),
        ),
    ],
    [
      "POST",
      /^\/v1\/account_links$/,
      ({ account, type, return_url, refresh_url }) => {
        get(account, "account");
        if (type !== "account_onboarding" || !return_url || !refresh_url)
          throw refused("Missing required param.");
        return {
          object: "account_link",
          url: `https://connect.stripe.example/setup/e/${account}/${++count}`,
          expires_at: Math.floor(Date.now() / 1_000) + 300,
        };
      },
    ],
    ["POST", /^\/v1\/refunds$/, (form) => refund(form)],
    [
      "GET",
      /^\/v1\/refunds$/,
      (form) => {
        const intent = form["payment_intent"];
        const refunds = all("refund").filter((one) => !intent || one["payment_intent"] === intent);
        return list(form["expand"] ? refunds.map(withIntent) : refunds, form);
      },
    ],
    [
      "POST",
      /^\/v1\/transfers$/,
      (form) => {
        if (form["destination"] === "acct_gone") throw missing("destination");
        if (objects.get(form["destination"])?.["capabilities"].transfers === "inactive")
          throw refused(
            "Your destination account needs to have at least one of the following capabilities enabled: transfers, crypto_transfers, legacy_payments",
            "insufficient_capabilities_for_transfer",
          );
        const amount = Number(form["amount"]);
        if (amount > funds)
          throw refused(
            "You have insufficient available funds in your Stripe account.",
            "balance_insufficient",
          );
        funds -= amount;
        return make("tr", { object: "transfer", reversed: false, amount_reversed: 0, ...form, amount });
      },
    ],
    [
      "GET",
      /^\/v1\/transfers$/,
      (form) => {
        const group = form["transfer_group"];
        return list(
          all("transfer").filter((one) => !group || one["transfer_group"] === group),
          form,
        );
      },
    ],
    ["GET", /^\/v1\/disputes\/(\w+)$/, (_form, id) => withIntent(get(id, "dispute"))],
    ["GET", /^\/v1\/disputes$/, (form) => list(all("dispute").map(withIntent), form)],
    ["GET", /^\/v1\/payment_intents$/, (form) => list(all("payment_intent").map(intentReply), form)],
    [
      "POST",
      /^\/v1\/checkout\/sessions$/,
      ({ mode, customer, success_url, cancel_url, allowed_payment_method_types: allowed }) => {
        if (mode !== "setup" || !allowed) throw refused("Missing required param: currency.");
        get(customer, "customer");
        const session = make("cs", {
          ...{ object: "checkout.session", mode, customer, success_url, cancel_url },
          ...{ status: "open", setup_intent: null },
        });
        return Object.assign(session, { url: `${address}/pay/${session["id"]}` });
      },
    ],
    ["GET", /^\/v1\/checkout\/sessions\/(\w+)$/, (_form, id) => get(id, "checkout.session")],
    ["POST", /^\/v1\/payment_methods\/(\w+)\/attach$/, (form, id) => attach(id, form["customer"])],
    ["GET", /^\/v1\/payment_methods\/(\w+)$/, (_form, id) => methodOf(id)],
    ["POST", /^\/v1\/payment_methods\/(\w+)\/detach$/, (_form, id) => detach(id)],
  ];

  function answer(method: string, path: string, form: StripeObject): StripeObject {
    for (const [verb, pattern, endpoint] of endpoints) {
      const match = pattern.exec(path);
      if (match && verb === method) return endpoint(form, match[1] ?? "");
    }
    throw new Refusal(404, { type: "invalid_request_error", message: `Unrecognized request URL ${path}` });
  }

  async function reply(request: IncomingMessage): Promise<{ status: number; body: StripeObject }> {
    const url = new URL(request.url ?? "/", "http://stripe");
    const sent = request.method === "GET" ? url.search : await text(request);
    const form = parseForm(sent);
    if (request.headers.authorization !== `Bearer ${secretKey}`)
      return { status: 401, body: { error: { type: "invalid_request_error", message: "Invalid API Key" } } };
    asked.push(`${request.method} ${url.pathname}`);
    const key = request.headers["idempotency-key"];
    if (typeof key !== "string") return attempt(() => answer(request.method!, url.pathname, form));
    const requestText = `${request.method} ${url.pathname} ${sent}`;
    if (busy?.test(`${request.method} ${url.pathname}`))
      return { status: 409, body: { error: STILL_RUNNING } };
    const kept = replies.get(key);
    if (kept && kept.asked !== requestText)
      return { status: 400, body: { error: { type: "idempotency_error" } } };
    if (kept) return kept;
    const made = attempt(() => answer(request.method!, url.pathname, form));
    // Errors after the start of the work are stored too: docs.stripe.com/api/idempotent_requests.
    replies.set(key, { asked: requestText, ...structuredClone(made) });
    return made;
  }

  function enterCard(sessionId: string, token: string): string {
    const session = get(sessionId, "checkout.session");
    const method = Object.assign(attach(token, session["customer"]), { isSetUp: true });
    session["status"] = "complete";
    session["setup_intent"] = { object: "setup_intent", status: "succeeded", payment_method: method };
    return session["success_url"].replace("{CHECKOUT_SESSION_ID}", sessionId);
  }

  /** Stripe's page: a GET shows it, and its button enters the card. */
  function payPage(request: IncomingMessage, response: ServerResponse, sessionId: string): void {
    if (request.method === "POST")
      response.writeHead(303, { location: enterCard(sessionId, "pm_card_visa") }).end();
    else
      response
        .writeHead(200, { "content-type": "text/html" })
        .end(
          `<form method="post"><button>Save card</button></form><a href="${objects.get(sessionId)?.["cancel_url"]}">Back</a>`,
        );
  }

  const server = createServer((request, response) => {
    const [, page] = /^\/pay\/(\w+)$/.exec(request.url ?? "") ?? [];
    if (page) return payPage(request, response, page);
    void reply(request).then(({ status, body }) => {
      if (lost?.test(`${request.method} ${request.url}`)) {
        lost = null;
        response.destroy();
        return;
      }
      // Tells Stripe's client not to retry.
      response.writeHead(status, { "content-type": "application/json", "stripe-should-retry": "false" });
      response.end(JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: address,
    enterCard,
    asked,
    finishOnboarding: (accountId) => {
      const done = { details_submitted: true, payouts_enabled: true, capabilities: { transfers: "active" } };
      const requirements = { currently_due: [], past_due: [], pending_verification: [], errors: [] };
      Object.assign(get(accountId, "account"), {
        ...done,
        requirements: { ...requirements, disabled_reason: null, current_deadline: null },
      });
    },
    hasFunds: (amount) => {
      funds = amount;
    },
    change: (id, change) => void Object.assign(get(id, "object"), change),
    objectOf: (id) => get(id, "object"),
    isBusy: (path) => {
      busy = path;
    },
    loseAnswer: (path) => {
      lost = path;
    },
    approve: (id) => succeed(get(id, "PaymentIntent")),
    openDispute: (id, { status = "needs_response", amount } = {}) => {
      const intent = get(id, "PaymentIntent");
      const { currency } = intent;
      return make("dp", {
        ...{ object: "dispute", amount: amount ?? intent["amount"], payment_intent: id },
        ...{ reason: "fraudulent", status, evidence_details: { due_by: DISPUTE_DUE_SECONDS }, currency },
        balance_transactions: status.startsWith("warning")
          ? []
          : [
              { fee: 1_500, currency },
              { fee: 900, currency: "chf" },
            ],
      })["id"];
    },
    refundByHand: (id, amount, status = "succeeded") =>
      Object.assign(refund({ payment_intent: id, amount: String(amount), metadata: {} }), { status })["id"],
    payElsewhere: (amount) =>
      make("pi", {
        ...{ object: "payment_intent", status: "succeeded", payment_method: "pm_card_visa" },
        ...{ amount, amount_received: amount, currency: "usd", metadata: {} },
      })["id"],
    closeDispute: (id, status) => Object.assign(get(id, "dispute"), { status }),
    intentsOf: (orderId) => all("payment_intent").filter((one) => one["metadata"]?.order_id === orderId),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function attempt(work: () => StripeObject): { status: number; body: StripeObject } {
  try {
    return { status: 200, body: work() };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { status: error.status, body: { error: error.error } };
  }
}

function raise(error: Error): never {
  throw error;
}

/** Our ids of Stripe's objects, in memory. */
export function memoryReferences(): StripeReferences {
  const stored = new Map<string, string>();
  return {
    find: async (ourId) => stored.get(ourId) ?? null,
    async store(ourId, stripeId) {
      if (!stored.has(ourId)) stored.set(ourId, stripeId);
      return stored.get(ourId)!;
    },
  };
}
