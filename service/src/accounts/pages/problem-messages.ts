import { ownValue } from "../../core/required.ts";
import { type Html, html } from "../../platform/http/html.ts";

interface ProblemMessage {
  tone: "good" | "bad" | "warning";
  text: string;
}

/** By `?problem=`. An unknown code shows the default message, never itself. */
const problemMessages: Record<string, ProblemMessage> = {
  SIGNED_OUT: { tone: "good", text: "You are signed out." },
  INVALID_SESSION: { tone: "warning", text: "Your session is over. Please sign in again." },
  STALE_SESSION: {
    tone: "warning",
    text: "This action needs a recent sign-in. Sign in again to continue.",
  },
  ACCESS_DENIED: {
    tone: "warning",
    text: "You declined at the other site, so you are not signed in. Nothing has changed.",
  },
  INVALID_TOKEN: { tone: "bad", text: "That link was used before, or is too old. Ask for a new one." },
  FLOW_LOST: {
    tone: "warning",
    text: "The sign-in at the other site was not completed in this browser. Please try again.",
  },
  ACCOUNT_DISABLED: { tone: "bad", text: "This account may not sign in." },
  UNVERIFIED_EMAIL: {
    tone: "bad",
    text: "The other site has not verified your email address. Verify it there, or sign in by email here.",
  },
  RATE_LIMIT_EXCEEDED: { tone: "warning", text: "That was too often. Wait a minute, then try again." },
  SERVICE_UNAVAILABLE: {
    tone: "bad",
    text: "The other site does not answer. Try again, or sign in by mail.",
  },
};

const DEFAULT_MESSAGE: ProblemMessage = { tone: "bad", text: "Signing in did not work. Please try again." };

export function renderProblem(code: unknown): Html | null {
  if (typeof code !== "string") return null;
  const { tone, text } = ownValue(problemMessages, code) ?? DEFAULT_MESSAGE;
  return html`<p class="notice ${tone}" role="${tone === "good" ? "status" : "alert"}">${text}</p>`;
}
