// What one page tells the next beside the address: paths stand in histories and logs, this does not.

const ADDRESS = "stoa.address";
const RETURN_TO = "stoa.return-to";
const HOME = "/auth/signed-in";
const RETURN_MINUTES = 60;

/** The address that was typed, for this tab alone: the mail's link opens in another. */
export const rememberAddress = (/** @type {string} */ email) => keep(() => sessionStorage, ADDRESS, email);
export const rememberedAddress = () => kept(() => sessionStorage, ADDRESS);
/** Whoever comes next may be somebody else. */
export const forgetAddress = () => keep(() => sessionStorage, ADDRESS, "");

/**
 * Where a mailed link shall lead in the end; it opens in a tab of its own.
 * @param {string | undefined} path
 */
export function rememberReturnTo(path = HOME) {
  keep(() => localStorage, RETURN_TO, JSON.stringify({ path, at: Date.now() }));
}

/** Once. */
export function takeReturnTo() {
  try {
    const { path, at } = JSON.parse(kept(() => localStorage, RETURN_TO) ?? "");
    localStorage.removeItem(RETURN_TO);
    return Date.now() - at < RETURN_MINUTES * 60_000 ? String(path) : HOME;
  } catch {
    return HOME;
  }
}

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
