import { askSignedIn, findForm, Refusal, showCard, whenSent } from "./form.js";
import { forgetAdminToken, rememberAdminToken, rememberedAdminToken, takeFromFragment } from "./memory.js";

const given = takeFromFragment("token");
if (given) rememberAdminToken(given);
const token = given ?? rememberedAdminToken();

whenSent(findForm("acceptance"), async () => {
  try {
    await askSignedIn("POST", "/api/auth/first-admin", { token });
  } catch (error) {
    if (!(error instanceof Refusal && error.code === "INVALID_TOKEN")) throw error;
    forgetAdminToken();
    return showCard("lost");
  }
  forgetAdminToken();
  return showCard("done");
});
if (!token) showCard("lost");
