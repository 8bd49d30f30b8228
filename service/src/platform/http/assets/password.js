import { askSignedIn, byId, findForm, showCard, whenSent } from "./form.js";

whenSent(findForm("new-password"), async ({ password }) => {
  const box = /** @type {HTMLInputElement} */ (byId("revoke-access"));
  await askSignedIn("PUT", "/v1/account/password", { password, revokeAccess: box.checked });
  showCard("done");
});
