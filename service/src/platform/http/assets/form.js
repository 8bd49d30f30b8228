// Shared by all pages with a form: requests to the service, and error messages.

/** An error response, or no response. */
export class Refusal extends Error {
  /**
   * @param {string} code
   * @param {string} message
   * @param {Record<string, any>} [details]
   * @param {number} [retryAfterSeconds]
   */
  constructor(code, message, details = {}, retryAfterSeconds = 0) {
    super(message);
    this.code = code;
    this.details = details;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

const UNREACHABLE = "The service does not answer. Look at your connection, then try again.";

/**
 * Sends a request and returns `data` of the response.
 * @param {string} method
 * @param {string} path
 * @param {Record<string, unknown>} [body]
 * @returns {Promise<any>}
 */
export async function ask(method, path, body) {
  const response = await fetch(path, {
    method,
    credentials: "same-origin",
    ...(body && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
  }).catch(() => {
    throw new Refusal("UNREACHABLE", UNREACHABLE);
  });
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer.data;
  const { code = "UNREACHABLE", message = UNREACHABLE, details } = answer.error ?? {};
  throw new Refusal(code, message, details, Number(response.headers.get("retry-after")) || 0);
}

/**
 * Goes to another page. Resolves when the user comes back with the browser's back button.
 * @param {string} path
 */
export function goTo(path) {
  location.assign(path);
  return new Promise((resolve) => addEventListener("pageshow", resolve, { once: true }));
}

/**
 * An element that the page always has.
 * @template {HTMLElement} [E=HTMLElement]
 * @param {string} id
 * @returns {E}
 */
export const byId = (id) => /** @type {E} */ (document.getElementById(id));

/**
 * Like `ask`, but redirects to sign-in and back when the session has ended or is not fresh enough.
 * @type {typeof ask}
 */
export async function askSignedIn(method, path, body) {
  try {
    return await ask(method, path, body);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const isStale = error.details.required === "fresh-sign-in";
    if (!isStale && error.code !== "INVALID_API_KEY" && error.code !== "INVALID_SESSION") throw error;
    const problem = isStale ? "STALE_SESSION" : "INVALID_SESSION";
    return goTo(`/auth/sign-in?problem=${problem}&returnTo=${encodeURIComponent(location.pathname)}`);
  }
}

/** @param {string} id */
export const findForm = (id) => /** @type {HTMLFormElement | null} */ (document.getElementById(id));

/**
 * Shows only this card of the page and moves the focus to it, so that screen readers announce it.
 * @param {string} id
 */
export function showCard(id) {
  for (const card of document.querySelectorAll(".card")) card.toggleAttribute("hidden", card.id !== id);
  const card = byId(id);
  const start = card.querySelector("input") ?? card.querySelector("h1");
  /** @type {HTMLElement | null} */ (start)?.focus();
}

/** @typedef {{ field: string | null, text: string }} Fault */

/**
 * Submits a form with `send`. Shows its errors above and beside the fields, with the text of `sentences` for their code
 * if there is one.
 * @param {HTMLFormElement | null} form
 * @param {(values: Record<string, string>) => Promise<unknown>} send
 * @param {Record<string, string>} [sentences]
 */
export function whenSent(form, send, sentences = {}) {
  if (!form) return;
  const button = /** @type {HTMLButtonElement} */ (form.querySelector("button:not([type=button])"));
  let isBusy = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (isBusy) return;
    clearFaults(form);
    const missing = missingIn(form);
    if (missing.length > 0) return tellFaults(form, missing);
    isBusy = true;
    button.setAttribute("aria-disabled", "true");
    const slow = setTimeout(() => tellProgress(form, "One moment …"), 400);
    try {
      await send(valuesOf(form));
    } catch (error) {
      tellFaults(form, faultsOf(form, error, sentences));
    } finally {
      clearTimeout(slow);
      tellProgress(form, "");
      button.removeAttribute("aria-disabled");
      isBusy = false;
    }
  });
  letPasswordBeSeen(form);
  form.dataset.ready = "";
  button.disabled = false;
}

/** @param {HTMLFormElement} form */
const fieldsOf = (form) => /** @type {HTMLInputElement[]} */ ([...form.querySelectorAll("input[name]")]);

/** @param {HTMLFormElement} form */
const valuesOf = (form) => Object.fromEntries(fieldsOf(form).map(({ name, value }) => [name, value]));

/** @param {HTMLFormElement} form */
const missingIn = (form) =>
  fieldsOf(form)
    .filter(({ value }) => value.trim() === "")
    .map(({ name, dataset }) => ({ field: name, text: dataset.missing ?? "" }));

/**
 * @param {HTMLFormElement} form
 * @param {unknown} error
 * @param {Record<string, string>} sentences
 * @returns {Fault[]}
 */
function faultsOf(form, error, sentences) {
  if (!(error instanceof Refusal)) throw error;
  const { code, message, details, retryAfterSeconds } = error;
  if (code === "RATE_LIMIT_EXCEEDED") return [{ field: null, text: tooOften(retryAfterSeconds) }];
  if (Array.isArray(details.errors)) {
    return details.errors.map(({ field, reason }) => {
      const label = labelOf(form, field);
      return { field: label && field, text: `${label ?? field} ${reason}.` };
    });
  }
  return [{ field: null, text: sentences[code] ?? message }];
}

/** @param {number} seconds */
export function tooOften(seconds) {
  if (seconds <= 0) return "That was too often. Try again in a while.";
  if (seconds < 90) return `That was too often. Try again in ${seconds} seconds.`;
  if (seconds < 5400) return `That was too often. Try again in ${Math.ceil(seconds / 60)} minutes.`;
  return `That was too often. Try again in ${Math.ceil(seconds / 3600)} hours.`;
}

/**
 * @param {HTMLFormElement} form
 * @param {string} name
 */
const inputOf = (form, name) => fieldsOf(form).find((field) => field.name === name);

/**
 * @param {HTMLFormElement} form
 * @param {string} name
 */
const labelOf = (form, name) => inputOf(form, name)?.labels?.[0]?.textContent ?? null;

/** @param {HTMLFormElement} form */
const summaryOf = (form) => /** @type {HTMLElement} */ (form.querySelector(".summary"));

/** @param {HTMLFormElement} form */
function clearFaults(form) {
  summaryOf(form).hidden = true;
  summaryOf(form).replaceChildren();
  for (const input of fieldsOf(form)) {
    input.removeAttribute("aria-invalid");
    byId(`${input.id}-fault`).hidden = true;
  }
}

/**
 * @param {HTMLFormElement} form
 * @param {Fault[]} faults
 */
function tellFaults(form, faults) {
  const list = document.createElement("ul");
  for (const fault of faults) list.append(faultItem(form, fault));
  const summary = summaryOf(form);
  summary.hidden = false;
  summary.replaceChildren(list);
  summary.focus();
}

/**
 * @param {HTMLFormElement} form
 * @param {Fault} fault
 */
function faultItem(form, { field, text }) {
  const item = document.createElement("li");
  const input = field ? inputOf(form, field) : undefined;
  if (!input) {
    item.textContent = text;
    return item;
  }
  const beside = byId(`${input.id}-fault`);
  beside.textContent = text;
  beside.hidden = false;
  input.setAttribute("aria-invalid", "true");
  const link = document.createElement("a");
  link.href = `#${input.id}`;
  link.textContent = text;
  link.addEventListener("click", (event) => {
    // As a link it would add a history entry for a page that the user leaves soon.
    event.preventDefault();
    input.focus();
  });
  item.append(link);
  return item;
}

/**
 * @param {HTMLFormElement} form
 * @param {string} text
 */
export function tellProgress(form, text) {
  const progress = form.querySelector(".progress");
  if (progress) progress.textContent = text;
}

/** @param {HTMLFormElement} form */
function letPasswordBeSeen(form) {
  const box = /** @type {HTMLInputElement | null} */ (form.querySelector("input[data-shows]"));
  box?.addEventListener("change", () => {
    byId(box.dataset.shows ?? "").setAttribute("type", box.checked ? "text" : "password");
  });
}
