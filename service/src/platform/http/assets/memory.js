// What one page tells the next beside the address: paths stand in histories and logs, this does not.

const ADDRESS = "stoa.address";
const RETURN_TO = "stoa.return-to";
const HOME = "/auth/signed-in";
const RETURN_MINUTES = 60;
const ADMIN_TOKEN = "stoa.first-admin";
/** As long as the link lives. */
const ADMIN_MINUTES = 30;

/** The address that was typed, for this tab alone: the mail's link opens in another. */
export const rememberAddress = (/** @type {string} */ email) => keep(() => sessionStorage, ADDRESS, email);
export const rememberedAddress = () => kept(() => sessionStorage, ADDRESS);
/** Whoever comes next may be somebody else. */
export const forgetAddress = () => keep(() => sessionStorage, ADDRESS, "");

/**
 * Where a mailed link shall lead in the end; it opens in a tab of its own.
 * @param {string | undefined} path
 */
export const rememberReturnTo = (path = HOME) => keepLately(RETURN_TO, path);

/** Once. */
export function takeReturnTo() {
  const path = keptLately(RETURN_TO, RETURN_MINUTES);
  keepLately(RETURN_TO, "");
  return path || HOME;
}

/** Somebody who has the token but no account goes away to sign in, and may come back in another tab. */
export const rememberAdminToken = (/** @type {string} */ token) => keepLately(ADMIN_TOKEN, token);
export const rememberedAdminToken = () => keptLately(ADMIN_TOKEN, ADMIN_MINUTES);
export const forgetAdminToken = () => keepLately(ADMIN_TOKEN, "");

/**
 * The secret that the address carries after `#`, taken out of it before anything else happens.
 * @param {string} name
 */
export function takeFromFragment(name) {
  const value = new URLSearchParams(location.hash.slice(1)).get(name);
  if (location.hash) history.replaceState(history.state, "", location.pathname + location.search);
  return value;
}

/** A browser may forbid to keep anything; then the page after this knows less. */
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

/** For every tab. */
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
