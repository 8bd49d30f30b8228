import "./first-steps.css";
import type { List } from "@stoa/sdk";
import { queryOptions, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { CheckIcon, CloseIcon } from "../../components/icons.tsx";
import { signInUrl, useAccount } from "../../session.ts";

interface Step {
  title: string;
  text: string;
  /** A page of the client, or an address of the service's other pages. */
  to: string;
  isDone: boolean;
}

const NONE = {
  purchases: false,
  providerKeys: false,
  runs: false,
  handle: false,
  products: false,
  published: false,
  payoutAccount: false,
  sales: false,
  apiKeys: false,
  requests: false,
  webhooks: false,
  deliveries: false,
};
type Progress = typeof NONE;

const ONE = { limit: 1 };
const hasAny = async (list: List<unknown>): Promise<boolean> => (await list.page()).data.length > 0;

/** What a member did already, by the resources that exist. */
const progressQuery = queryOptions({
  queryKey: ["first-steps"],
  queryFn: async (): Promise<Progress> => {
    const [account, webhooks, own] = await Promise.all([
      stoa.account.get(),
      stoa.webhooks.list(ONE).page(),
      stoa.products.list({ author: "me", limit: 20 }).page(),
    ]);
    const endpoint = webhooks.data[0];
    // Accounts without a product may not ask about sales and payouts.
    const isSeller = account.permissions.includes("manage:products");
    const [purchases, providerKeys, runs, sales, payouts, apiKeys, requests, deliveries] = await Promise.all([
      hasAny(stoa.purchases.list(ONE)),
      hasAny(stoa.ai.keys.list(ONE)),
      hasAny(stoa.ai.executions.list(ONE)),
      isSeller && hasAny(stoa.sales.list(ONE)),
      isSeller ? stoa.payouts.account.get() : null,
      hasAny(stoa.apiKeys.list(ONE)),
      hasAny(stoa.requestLogs.list(ONE)),
      endpoint ? hasAny(stoa.webhooks.deliveries(endpoint.id, ONE)) : false,
    ]);
    return {
      purchases,
      providerKeys,
      runs,
      handle: account.handle !== null,
      products: own.data.length > 0,
      published: own.data.some(({ status }) => status === "published"),
      payoutAccount: payouts !== null && payouts.account !== null,
      sales,
      apiKeys,
      requests,
      webhooks: endpoint !== undefined,
      deliveries,
    };
  },
});

const ROLES = ["buyer", "seller", "integrator"] as const;
type Role = (typeof ROLES)[number];
const ROLE_LABELS: Record<Role, string> = { buyer: "Buy and run", seller: "Sell", integrator: "Use the API" };

const SELLING = "/docs/guides/selling";

const STEPS: Record<Role, (progress: Progress) => Step[]> = {
  buyer: ({ purchases, providerKeys, runs }) => [
    {
      title: "Get a product",
      text: "In a test environment no money moves.",
      to: "/search",
      isDone: purchases,
    },
    {
      title: "Add a provider key",
      text: "Or use the sandbox of a test environment, which needs none.",
      to: "/account/provider-keys",
      isDone: providerKeys || runs,
    },
    { title: "Run it", text: "You see the cost before each run.", to: "/library", isDone: runs },
  ],
  seller: ({ handle, products, published, payoutAccount, sales }) => [
    { title: "Choose a handle", text: "Your page gets its address by it.", to: "/account", isDone: handle },
    { title: "Write a product", text: "A prompt or a workflow, as a draft.", to: SELLING, isDone: products },
    { title: "Publish it", text: "The service checks it first.", to: SELLING, isDone: published },
    { title: "Add a payout account", text: "Your sales are paid to it.", to: SELLING, isDone: payoutAccount },
    { title: "Sell it", text: "Share the link of its page.", to: SELLING, isDone: sales },
  ],
  integrator: ({ apiKeys, requests, webhooks, deliveries }) => [
    {
      title: "Create an API key",
      text: "It acts as you, and does only what it allows.",
      to: "/settings/api",
      isDone: apiKeys,
    },
    {
      title: "Send a request",
      text: "The request log shows it within a second.",
      to: "/settings/logs",
      isDone: requests,
    },
    {
      title: "Create a webhook",
      text: "The built-in inbox receives it in one click.",
      to: "/settings/webhooks",
      isDone: webhooks,
    },
    {
      title: "See an event arrive",
      text: "Send a test event, then look at its delivery.",
      to: "/settings/webhooks",
      isDone: deliveries,
    },
  ],
};

const HIDDEN = "stoa.first-steps-hidden";

function isListHidden(): boolean {
  try {
    return localStorage.getItem(HIDDEN) !== null;
  } catch {
    return false;
  }
}

/** What to do first, on the home page: of a member until all is done or the list is closed, of visitors in a test shop. */
export function FirstSteps() {
  const account = useAccount();
  const [role, setRole] = useState<Role>("buyer");
  const [isHidden, hide] = useState(isListHidden);
  const { data: progress = NONE, isPending } = useQuery({
    ...progressQuery,
    enabled: account !== null && !isHidden,
  });
  if (isHidden) return null;
  // Of its usual height, so that nothing moves when it is known what is done.
  if (account !== null && isPending) return <section className="beam first-steps pending" />;
  if (ROLES.every((role) => STEPS[role](progress).every(({ isDone }) => isDone))) return null;
  const steps = STEPS[role](progress);
  const next = steps.find(({ isDone }) => !isDone);
  const close = () => {
    hide(true);
    try {
      localStorage.setItem(HIDDEN, "1");
    } catch {
      // Forbidden by the browser: then only this page hides it.
    }
  };
  return (
    <section className="beam first-steps" aria-label="First steps">
      <div className="row between wrap">
        <h2>First steps</h2>
        <span className="row">
          <span className="seg s">
            {ROLES.map((name) => (
              <button key={name} type="button" aria-pressed={role === name} onClick={() => setRole(name)}>
                {ROLE_LABELS[name]}
              </button>
            ))}
          </span>
          <button type="button" className="iconb" aria-label="Hide the first steps" onClick={close}>
            <CloseIcon />
          </button>
        </span>
      </div>
      <ol>
        {account === null && (
          <li>
            <b>Sign in</b>
            <p className="soft">An email address is enough.</p>
            <a href={signInUrl()} className="btn s">
              Sign in
            </a>
          </li>
        )}
        {steps.map((step) => (
          <li key={step.title} className={step.isDone ? "done" : ""}>
            <b className="row">
              {step.isDone && <CheckIcon />} {step.title}
              {step.isDone && <span className="hidden">, done</span>}
            </b>
            <p className="soft">{step.text}</p>
            {account !== null && step === next && <StepLink step={step} />}
          </li>
        ))}
      </ol>
    </section>
  );
}

const StepLink = ({ step: { to, title } }: { step: Step }) =>
  to.startsWith("/docs") ? (
    <a href={to} className="btn s">
      Read how
    </a>
  ) : (
    <Link to={to} className="btn s">
      {title}
    </Link>
  );
