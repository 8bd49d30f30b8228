import { askSignedIn, findForm, showCard, whenSent } from "./form.js";

whenSent(findForm("new-password"), async ({ password }) => {
  await askSignedIn("PUT", "/v1/account/password", { password });
  showCard("done");
});
