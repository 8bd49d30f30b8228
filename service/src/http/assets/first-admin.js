import { askSignedIn, findForm, Refusal, showCard, whenSent } from "./form.js";
import { takeFromFragment } from "./memory.js";

const KEPT = "stoa.first-admin";

// Kept in this tab while somebody signs in; the token is theirs already, and works once.
const given = takeFromFragment("token");
if (given) sessionStorage.setItem(KEPT, given);
const token = given ?? sessionStorage.getItem(KEPT);

whenSent(findForm("acceptance"), async () => {
  try {
    await askSignedIn("POST", "/api/auth/first-admin", { token });
  } catch (error) {
    if (!(error instanceof Refusal && error.code === "INVALID_TOKEN")) throw error;
    showCard("lost");
    return sessionStorage.removeItem(KEPT);
  }
  sessionStorage.removeItem(KEPT);
  return showCard("done");
});
if (!token) showCard("lost");
