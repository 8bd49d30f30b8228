import { createHash } from "node:crypto";
import type { Account, Charge, ChargeState, Undecided } from "./store.ts";

const ENTITIES: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

const escapeHtml = (text: string) => text.replace(/[&<>"']/g, (character) => ENTITIES[character]!);

/** For example "12.50 USD", with the decimals of ISO 4217. */
function formatMoney(minor: bigint, currency: string): string {
  const { maximumFractionDigits: decimals = 2 } = new Intl.NumberFormat("en", {
    style: "currency",
    currency,
  }).resolvedOptions();
  const digits = minor.toString().padStart(decimals + 1, "0");
  const whole = digits.slice(0, digits.length - decimals);
  return `${whole}${decimals > 0 ? `.${digits.slice(-decimals)}` : ""} ${currency}`;
}

/** Title and text after the charge has ended, instead of the buttons. */
const endings: Record<Exclude<ChargeState, "requires_action">, { title: string; text: string }> = {
  succeeded: { title: "Payment approved", text: "You can close this page and go back to your order." },
  declined: { title: "Payment declined", text: "Nothing was charged. You can close this page." },
  canceled: { title: "Payment canceled", text: "Nothing was charged. You can close this page." },
};

const buttons = `<form method="post">
<button name="decision" value="approve" class="approve">Approve</button>
<button name="decision" value="decline">Decline</button>
</form>`;

const style = `
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --paper: #fff; --ground: #f3f4f6; --line: #8c959f; --go: #116329; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --soft: #9da7b1; --paper: #161b22; --ground: #0d1117; --line: #6e7681; --go: #2a7f3f; }
}
body { margin: 0; padding: 1rem; background: var(--ground); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 24rem; margin: 10vh auto 0; padding: 1.5rem; background: var(--paper); border-radius: .75rem; overflow-wrap: anywhere; }
h1 { margin: 0; font-size: 1.125rem; }
h2 { margin: 1.5rem 0 0; font-size: 1rem; }
.amount { margin: .75rem 0 0; font-size: 2rem; line-height: 1.2; font-weight: 600; }
.soft { margin: 0; flex-basis: 100%; color: var(--soft); }
footer.soft { margin-top: 1.5rem; }
form { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.5rem 0; }
button { flex: 1; min-height: 2.75rem; border: 1px solid var(--line); border-radius: .5rem; background: transparent; color: inherit; font: inherit; font-weight: 600; cursor: pointer; }
button.approve { border-color: var(--go); background: var(--go); color: #fff; }
button:focus-visible { outline: 3px solid #539bf5; outline-offset: 2px; }
`;

/** Allows one style, and forms to this origin. */
export const pagePolicy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(style).digest("base64")}'`,
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join("; ");

export function authorizePage(charge: Charge): string {
  const { title, answer } =
    charge.state === "requires_action"
      ? { title: "Approve this payment", answer: buttons }
      : { title: endings[charge.state].title, answer: `<p role="status">${endings[charge.state].text}</p>` };
  return htmlPage(
    title,
    `<p class="amount">${escapeHtml(formatMoney(charge.amountMinor, charge.currency))}</p>
<p class="soft">${escapeHtml(charge.description)}</p>
${answer}
<footer class="soft">This is the test payment provider: no money moves.</footer>`,
  );
}

export function onboardingPage({ id, state }: Account): string {
  const rest =
    state === "restricted"
      ? `<form method="post">
<button class="approve">Finish</button>
</form>`
      : `<p role="status">You can close this page and go back to your payouts.</p>`;
  return htmlPage(
    state === "restricted" ? "Set up your payouts" : "Your payouts are set up",
    `<p class="soft">${escapeHtml(id)}</p>
<p class="soft">A real provider asks here who you are and where your bank is.</p>
${rest}
<footer class="soft">This is the test payment provider: no money moves.</footer>`,
  );
}

export const cardPage = (cards: { id: string; brand: string; last4: string }[]): string =>
  htmlPage(
    "Enter a card",
    `<p class="soft">A real provider asks here for the number of a card. Choose a test card; its name tells how its payments end.</p>
<form method="post">
${cards.map(({ id, brand, last4 }) => `<button name="card" value="${id}">${brand} ${last4}: ${id}</button>`).join("\n")}
</form>
<footer class="soft">This is the test payment provider: no money moves.</footer>`,
  );

interface Entry {
  id: string;
  amountMinor: bigint;
  currency: string;
}

/** The marketplace's name of the payment, which testers know. */
const entry =
  <Named extends string>(path: string, named: Named, messages: Record<string, string>) =>
  ({ id, amountMinor, currency, [named]: name }: Entry & Record<Named, string>): string =>
    `<form method="post" action="${path}/${id}">
<p class="soft">${escapeHtml(formatMoney(amountMinor, currency))}<br>${escapeHtml(name)}</p>
${Object.entries(messages)
  .map(([decision, words]) => `<button name="decision" value="${decision}">${words}</button>`)
  .join("\n")}
</form>`;

/** `pathOf` maps our paths to those that the browser uses. */
export function bankPage(
  { disputes, refunds, payouts }: Undecided,
  pathOf: (path: string) => string,
): string {
  const sections = [
    [
      "Disputes",
      disputes.map(entry(pathOf("/disputes"), "orderId", { won: "The seller wins", lost: "The buyer wins" })),
    ],
    [
      "Refunds under way",
      refunds.map(entry(pathOf("/refunds"), "refundId", { succeeded: "Succeed", failed: "Fail" })),
    ],
    [
      "Payouts under way",
      payouts.map(entry(pathOf("/payouts"), "payoutId", { completed: "Complete", failed: "Fail" })),
    ],
  ] as const;
  return htmlPage(
    "Test bank: pending decisions",
    `${sections
      .map(
        ([name, entries]) =>
          `<h2>${name}</h2>${entries.join("\n") || '<p class="soft">Nothing to decide.</p>'}`,
      )
      .join("\n")}
<footer class="soft">This is the test payment provider: no money moves.</footer>`,
  );
}

/** For an unknown charge, or a form of another site. */
export function notFoundPage(): string {
  return htmlPage(
    "No such payment",
    `<p class="soft">The link is incomplete, or the payment is of another test database. Open the link of the order again.</p>`,
  );
}

function htmlPage(title: string, content: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>${title}</h1>
${content}
</main>
</body>
</html>
`;
}
