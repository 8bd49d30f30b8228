import assert from "node:assert/strict";

interface Cookie {
  origin: string;
  name: string;
  value: string;
  path: string;
}

export interface Page {
  /** The final URL: `open` follows no redirect to another site. */
  url: URL;
  status: number;
  headers: Headers;
  text: string;
  /** The target of a redirect; null: none. */
  location: string | null;
}

const MAX_REDIRECTS = 12;

/** A minimal browser: cookies by path, redirects, and buttons of forms. */
export class Browser {
  readonly #home: string;
  #cookies: Cookie[] = [];

  /** `home` is the site whose cookies `cookie` returns. */
  constructor(home: string) {
    this.#home = home;
  }

  /** Sets the session cookie. */
  signIn(sessionToken: string): this {
    return this.setCookie("__Host-session", sessionToken);
  }

  cookie(name: string): string | undefined {
    return this.#cookies.find((cookie) => cookie.origin === this.#home && cookie.name === name)?.value;
  }

  setCookie(name: string, value: string): this {
    this.#keep({ origin: this.#home, name, value, path: "/" });
    return this;
  }

  /** Requests any site, without following redirects. */
  async get(address: string | URL, headers: Record<string, string> = {}): Promise<Page> {
    return this.#ask(new URL(address, this.#home), { headers });
  }

  /** Follows redirects to any site up to a URL with this prefix, which it returns without opening it. */
  async followUntil(address: string, stopsAt: string): Promise<string> {
    let at = address;
    for (let hops = 0; hops < MAX_REDIRECTS; hops++) {
      if (at.startsWith(stopsAt)) return at;
      const { location, status, text } = await this.get(at);
      assert.ok(location, `${at} answered ${status} and leads nowhere: ${text}`);
      at = location;
    }
    throw new Error(`too many redirects, the last to ${at}`);
  }

  /** Opens a page of the site and follows redirects within it. */
  async open(address: string | URL): Promise<Page> {
    return this.#follow(new URL(address, this.#home), {});
  }

  /** Submits the page's form with this button, with headers of the same origin. */
  async press(page: Page, name: string, value: string): Promise<Page> {
    const form = /<form method="post"(?: action="([^"]*)")?/.exec(page.text);
    assert.ok(form, page.text);
    assert.match(page.text, new RegExp(`<button[^>]* name="${name}" value="${value}"`));
    const hidden = [...page.text.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)];
    const fields = new URLSearchParams({ [name]: value });
    for (const [, key = "", text = ""] of hidden) fields.append(key, text);
    return this.post(new URL(form[1] ?? page.url, page.url), fields);
  }

  async post(address: URL, fields: URLSearchParams, headers: Record<string, string> = {}): Promise<Page> {
    const own = { "sec-fetch-site": "same-origin", origin: this.#home, ...headers };
    return this.#follow(address, { method: "POST", body: fields, headers: own });
  }

  async #follow(from: URL, first: RequestInit): Promise<Page> {
    let page = await this.#ask(from, first);
    for (let hops = 0; page.location !== null; hops++) {
      const url = new URL(page.location);
      if (url.origin !== this.#home)
        return { url, status: 0, headers: new Headers(), text: "", location: null };
      if (hops === MAX_REDIRECTS) throw new Error(`too many redirects, the last to ${url}`);
      page = await this.#ask(url, {});
    }
    return page;
  }

  async #ask(url: URL, init: RequestInit): Promise<Page> {
    const headers = { accept: "text/html", ...this.#cookieHeader(url), ...init.headers };
    const response = await fetch(url, { ...init, redirect: "manual", headers });
    for (const line of response.headers.getSetCookie()) this.#keep(this.#parse(url, line));
    const location = response.headers.get("location");
    return {
      url,
      status: response.status,
      headers: response.headers,
      text: await response.text(),
      location: location === null ? null : new URL(location, url).href,
    };
  }

  #cookieHeader({ origin, pathname }: URL): Record<string, string> {
    const fitting = this.#cookies.filter(
      (cookie) =>
        cookie.origin === origin && (cookie.path === "/" || `${pathname}/`.startsWith(`${cookie.path}/`)),
    );
    if (fitting.length === 0) return {};
    return { cookie: fitting.map(({ name, value }) => `${name}=${value}`).join("; ") };
  }

  #keep(cookie: Cookie): void {
    const isSame = ({ origin, name, path }: Cookie) =>
      origin === cookie.origin && name === cookie.name && path === cookie.path;
    this.#cookies = this.#cookies.filter((other) => !isSame(other));
    if (cookie.value !== "") this.#cookies.push(cookie);
  }

  #parse({ origin }: URL, line: string): Cookie {
    const [pair = "", ...attributes] = line.split(/; */);
    const name = pair.slice(0, pair.indexOf("="));
    const path = attributes.find((item) => /^path=/i.test(item))?.slice(5) ?? "/";
    if (origin === this.#home) mustBeWellMade(line, name, path, attributes);
    const isOver = attributes.some((item) => /^expires=thu, 01 jan 1970|^max-age=0$/i.test(item));
    return { origin, name, path, value: isOver ? "" : pair.slice(name.length + 1) };
  }
}

/** A prefix in the name requires its attributes, and every cookie of ours is HttpOnly. */
function mustBeWellMade(line: string, name: string, path: string, attributes: string[]): void {
  const has = (attribute: string) => attributes.some((item) => item.toLowerCase() === attribute);
  if (/^__(Host|Secure)-/.test(name)) assert.ok(has("secure"), line);
  if (name.startsWith("__Host-")) assert.equal(path, "/", line);
  assert.ok(has("httponly") && has("samesite=lax"), line);
}
