import { ask, byId, findForm, Refusal, tellProgress, whenSent } from "./form.js";
import { rememberedAddress, rememberReturnTo } from "./memory.js";

/** The server's limit for one address. */
const PAUSE_SECONDS = 30;

const address = rememberedAddress();
const form = findForm("resend");

if (address) byId("address").textContent = address;
if (address && form) letSendAgain(form, address);

/**
 * @param {HTMLFormElement} form
 * @param {string} email
 */
function letSendAgain(form, email) {
  const button = /** @type {HTMLButtonElement} */ (form.querySelector("button"));
  whenSent(form, async () => {
    try {
      rememberReturnTo(form.dataset.returnTo);
      await ask("POST", "/api/auth/magic-link", { email });
    } catch (error) {
      if (error instanceof Refusal && error.retryAfterSeconds > 0) pause(button, error.retryAfterSeconds);
      throw error;
    }
    pause(button, PAUSE_SECONDS);
    setTimeout(() => tellProgress(form, `Sent again to ${email}.`));
  });
  pause(button, PAUSE_SECONDS);
  byId("again").hidden = false;
}

/**
 * Counts down in the button itself: a live region would read every second aloud.
 * @param {HTMLButtonElement} button
 * @param {number} seconds
 */
function pause(button, seconds) {
  button.disabled = seconds > 0;
  button.textContent = seconds > 0 ? `Send it again (in ${seconds} s)` : "Send it again";
  if (seconds > 0) setTimeout(() => pause(button, seconds - 1), 1000);
}
