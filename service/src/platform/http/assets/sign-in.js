import { ask, byId, findForm, goTo, Refusal, whenSent } from "./form.js";
import { rememberAddress, rememberedAddress, rememberReturnTo } from "./memory.js";

const link = findForm("link");
const password = findForm("password-sign-in");
const registration = findForm("registration");

/** @param {HTMLFormElement | null} form */
const afterwards = (form) => form?.dataset.returnTo ?? "/auth/signed-in";

/** @param {HTMLFormElement | null} form */
function goToMailbox(form) {
  rememberReturnTo(afterwards(form));
  const after = form === registration ? "registration" : "link";
  return goTo(`/auth/check-mail?after=${after}&returnTo=${encodeURIComponent(afterwards(form))}`);
}

whenSent(link, async ({ email }) => {
  await ask("POST", "/api/auth/magic-link", { email: email.trim() });
  return goToMailbox(link);
});

whenSent(
  password,
  async ({ email, password: secret }) => {
    try {
      await ask("POST", "/api/auth/login", { email: email.trim(), password: secret });
    } catch (error) {
      if (error instanceof Refusal && error.code === "TWO_FACTOR_REQUIRED") {
        const fragment = `#challenge=${encodeURIComponent(error.details.challenge)}`;
        return goTo(`/auth/two-factor?returnTo=${encodeURIComponent(afterwards(password))}${fragment}`);
      }
      throw error;
    }
    return goTo(afterwards(password));
  },
  { INVALID_CREDENTIALS: "The email address or the password is wrong." },
);

whenSent(registration, async ({ name, email, password: secret }) => {
  await ask("POST", "/api/auth/register", { name: name.trim(), email: email.trim(), password: secret });
  return goToMailbox(registration);
});

// The typed email address is copied from one form to the next.
const address = /** @type {HTMLInputElement} */ (byId("email"));
if (address.value === "") address.value = rememberedAddress() ?? "";
addEventListener("pagehide", () => rememberAddress(address.value.trim()));
