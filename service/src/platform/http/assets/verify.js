import { ask, findForm, goTo, Refusal, showCard, whenSent } from "./form.js";
import { takeFromFragment, takeReturnTo } from "./memory.js";

const token = takeFromFragment("token");

whenSent(findForm("verification"), async () => {
  const destination = `/auth/signed-in?returnTo=${encodeURIComponent(takeReturnTo())}`;
  try {
    await ask("POST", "/api/auth/verify", { token });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    if (error.code === "INVALID_TOKEN") return showCard("lost");
    if (error.code !== "TWO_FACTOR_REQUIRED") throw error;
    const fragment = `#challenge=${encodeURIComponent(error.details.challenge)}`;
    return goTo(`/auth/two-factor?returnTo=${encodeURIComponent(destination)}${fragment}`);
  }
  return goTo(destination);
});
if (!token) showCard("lost");
