import { entryItem } from "./entries.js";
import { ask, askSignedIn, byId } from "./form.js";

/**
 * @typedef {object} Grant
 * @property {string} id
 * @property {{ name: string, redirectHosts: string[] }} client
 * @property {string[]} scopes
 * @property {string} createdAt
 * @property {string | null} lastUsedAt
 */

const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });

async function showGrants() {
  /** @type {Grant[]} */
  const grants = await ask("GET", "/v1/account/grants?limit=100");
  byId("grant-entries").replaceChildren(...grants.map(grantItem));
  // A list that its last button has emptied stays visible and says that it is empty.
  if (grants.length > 0) byId("grants").hidden = false;
}

/** @param {Grant} grant */
function grantItem({ id, client, scopes, createdAt, lastUsedAt }) {
  const used = lastUsedAt ? `last used on ${day.format(new Date(lastUsedAt))}` : "not used yet";
  const facts = [
    client.redirectHosts.join(", "),
    scopes.join(", "),
    `Allowed on ${day.format(new Date(createdAt))}, ${used}`,
  ];
  return entryItem(client.name, facts.filter(Boolean), {
    label: "Revoke",
    act: () => revoke(id, client.name),
  });
}

/**
 * @param {string} id
 * @param {string} name
 */
async function revoke(id, name) {
  const outcome = await askSignedIn("DELETE", `/v1/account/grants/${id}`).then(
    () => `Revoked: ${name} may do nothing more here.`,
    (error) => error.message,
  );
  await showGrants();
  byId("revoked").textContent = outcome;
  /** @type {HTMLElement | null} */ (document.querySelector("#grants h2"))?.focus();
}

showGrants().catch(() => {});
