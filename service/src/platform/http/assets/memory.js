// State for the next page outside of the URL, which is in histories and logs.

const ADDRESS = "stoa.address";
const RETURN_TO = "stoa.return-to";
const HOME = "/auth/signed-in";
const RETURN_MINUTES = 60;
const ADMIN_TOKEN = "stoa.first-admin";
/** The lifetime of the link. */
const ADMIN_MINUTES = 30;

/** The typed email address, for this tab only: the email's link opens in another. */
export const rememberAddress = (/** @type {string} */ email) => keep(() => sessionStorage, ADDRESS, email);
export const rememberedAddress = () => kept(() => sessionStorage, ADDRESS);
/** Another user may use the browser next. */
export const forgetAddress = () => keep(() => sessionStorage, ADDRESS, "");

/**
 * The page to return to after a magic link, which opens in its own tab.
 * @param {string | undefined} path
 */
export const rememberReturnTo = (path = HOME) => keepLately(RETURN_TO, path);

/** Also deletes it. */
export function takeReturnTo() {
  const path = keptLately(RETURN_TO, RETURN_MINUTES);
  keepLately(RETURN_TO, "");
  return path || HOME;
}

/** A user with the token signs in first, and may come back in another tab. */
export const rememberAdminToken = (/** @type {string} */ token) => keepLately(ADMIN_TOKEN, token);
export const rememberedAdminToken = () => keptLately(ADMIN_TOKEN, ADMIN_MINUTES);
export const forgetAdminToken = () => keepLately(ADMIN_TOKEN, "");

/**
 * Reads a secret from the URL's fragment and removes it from the address bar at once.
 * @param {string} name
 */
export function takeFromFragment(name) {
  const value = new URLSearchParams(location.hash.slice(1)).get(name);
  if (location.hash) history.replaceState(history.state, "", location.pathname + location.search);
  return value;
}

/** A browser may forbid storage; then the next page works without the value. */
function keep(/** @type {() => Storage} */ where, /** @type {string} */ name, /** @type {string} */ value) {
  try {
    where().setItem(name, value);
  } catch {}
}

function kept(/** @type {() => Storage} */ where, /** @type {string} */ name) {
  try {
    return where().getItem(name);
  } catch {
    return null;
  }
}

/** For all tabs. */
const keepLately = (/** @type {string} */ name, /** @type {string} */ value) =>
  keep(() => localStorage, name, value && JSON.stringify({ value, at: Date.now() }));

/**
 * @param {string} name
 * @param {number} minutes
 */
function keptLately(name, minutes) {
  try {
    const { value, at } = JSON.parse(kept(() => localStorage, name) ?? "");
    return Date.now() - at < minutes * 60_000 ? String(value) : null;
  } catch {
    return null;
  }
}
