import { entryItem } from "./entries.js";
import { ask, askSignedIn, byId, findForm, goTo, Refusal, whenSent } from "./form.js";
import { forgetAddress } from "./memory.js";

whenSent(findForm("sign-out"), async () => {
  try {
    await ask("POST", "/api/auth/logout");
  } catch (error) {
    // Signed out in another tab already, which is the intended state.
    if (!(error instanceof Refusal && error.code === "INVALID_SESSION")) throw error;
  }
  forgetAddress();
  return goTo("/auth/sign-in?problem=SIGNED_OUT");
});

/**
 * @typedef {object} Session
 * @property {string} id
 * @property {string} via
 * @property {string | null} userAgent
 * @property {string} ip
 * @property {string} lastSeenAt
 * @property {boolean} current
 */

const time = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

async function showSessions() {
  /** @type {Session[]} */
  const sessions = await ask("GET", "/v1/account/sessions?limit=100");
  byId("entries").replaceChildren(...sessions.map(sessionItem));
  byId("end-others").hidden = sessions.length < 2;
  byId("sessions").hidden = false;
}

/** @param {Session} session */
function sessionItem({ id, userAgent, ip, lastSeenAt, current }) {
  const seen = current ? "here and now" : `last seen ${time.format(new Date(lastSeenAt))}`;
  const action = { label: "Sign out", act: () => end(`/v1/account/sessions/${id}`) };
  return entryItem(deviceOf(userAgent), [`${ip}, ${seen}`], current ? undefined : action);
}

/** @param {string} path */
async function end(path) {
  const outcome = await askSignedIn("DELETE", path).then(
    () => "Signed out there.",
    (error) => error.message,
  );
  await showSessions();
  byId("ended").textContent = outcome;
  /** @type {HTMLElement | null} */ (document.querySelector("#sessions h2"))?.focus();
}

// The first match counts: browsers also name others that they imitate.
const BROWSERS = { Edg: "Edge", OPR: "Opera", Firefox: "Firefox", Chrome: "Chrome", Safari: "Safari" };
const SYSTEMS = {
  Windows: "Windows",
  Android: "Android",
  iPhone: "iPhone",
  iPad: "iPad",
  "Mac OS X": "macOS",
  CrOS: "ChromeOS",
  Linux: "Linux",
};

/**
 * Browser and system, enough for users to recognize their devices.
 * @param {string | null} userAgent
 */
function deviceOf(userAgent) {
  if (!userAgent) return "A program";
  const browser = Object.entries(BROWSERS).find(([sign]) => userAgent.includes(`${sign}/`))?.[1];
  const system = Object.entries(SYSTEMS).find(([sign]) => userAgent.includes(sign))?.[1];
  if (!browser) return userAgent.slice(0, 60);
  return system ? `${browser} on ${system}` : browser;
}

byId("end-others").addEventListener("click", () => end("/v1/account/sessions"));
// Without the list, the page still shows the account.
showSessions().catch(() => {});
