import { ask, findForm, goTo, Refusal, showCard, whenSent } from "./form.js";
import { takeFromFragment } from "./memory.js";

// Stored in this history entry, so that a reload keeps it. Without a code, it is worthless.
const challenge = takeFromFragment("challenge") ?? history.state?.challenge;
history.replaceState({ challenge }, "");

const wrong = {
  "app-code": "This code is wrong, or was used before. Wait for the next one that your app shows.",
  "backup-code": "This is none of your backup codes, or it was used before.",
};

for (const [id, sentence] of Object.entries(wrong)) {
  const form = findForm(id);
  whenSent(
    form,
    async ({ code }) => {
      try {
        await ask("POST", "/api/auth/two-factor", { challenge, code: code.replaceAll(/\s/g, "") });
      } catch (error) {
        if (error instanceof Refusal && error.code === "INVALID_TOKEN") return showCard("over");
        throw error;
      }
      return goTo(form?.dataset.returnTo ?? "/auth/signed-in");
    },
    { INVALID_CREDENTIALS: sentence },
  );
}

for (const button of document.querySelectorAll("button[data-shows-card]")) {
  button.addEventListener("click", () => showCard(button.getAttribute("data-shows-card") ?? ""));
}
if (!challenge) showCard("over");
