import assert from "node:assert/strict";

interface Kept {
  name: string;
  value: string;
  path: string;
}

export interface Page {
  /** Where it ended: an address of another site is not opened. */
  url: URL;
  status: number;
  headers: Headers;
  text: string;
}

const MAX_REDIRECTS = 10;

/** The least that a browser must do for people: cookies by path, redirects within the site, and a form's buttons. */
export class Browser {
  readonly #origin: string;
  #cookies: Kept[] = [];

  constructor(origin: string) {
    this.#origin = origin;
  }

  /** As if they had come in by the sign-in page. */
  signIn(sessionToken: string): this {
    this.#keep({ name: "__Host-session", value: sessionToken, path: "/" });
    return this;
  }

  cookie(name: string): string | undefined {
    return this.#cookies.find((cookie) => cookie.name === name)?.value;
  }

  async open(address: string | URL): Promise<Page> {
    return this.#follow(new URL(address, this.#origin), { method: "GET" });
  }

  /** Presses a button of the page's form, as a page of the same origin. */
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
    const own = { "sec-fetch-site": "same-origin", origin: this.#origin, ...headers };
    return this.#follow(address, { method: "POST", body: fields, headers: own });
  }

  async #follow(from: URL, first: RequestInit): Promise<Page> {
    let url = from;
    let init = first;
    for (let hops = 0; hops <= MAX_REDIRECTS; hops++) {
      if (url.origin !== this.#origin) return { url, status: 0, headers: new Headers(), text: "" };
      const response = await fetch(url, {
        ...init,
        redirect: "manual",
        headers: this.#headersFor(url, init),
      });
      for (const line of response.headers.getSetCookie()) this.#keep(parse(line));
      const text = await response.text();
      const location = response.headers.get("location");
      if (location === null) return { url, status: response.status, headers: response.headers, text };
      url = new URL(location, url);
      init = { method: "GET" };
    }
    throw new Error(`too many redirects, the last to ${url}`);
  }

  #headersFor({ pathname }: URL, { headers }: RequestInit): Headers {
    const all = new Headers(headers);
    const fitting = this.#cookies.filter(({ path }) => path === "/" || `${pathname}/`.startsWith(`${path}/`));
    if (fitting.length > 0)
      all.set("cookie", fitting.map(({ name, value }) => `${name}=${value}`).join("; "));
    all.set("accept", "text/html");
    return all;
  }

  #keep({ name, value, path }: Kept): void {
    this.#cookies = this.#cookies.filter((cookie) => cookie.name !== name || cookie.path !== path);
    if (value !== "") this.#cookies.push({ name, value, path });
  }
}

/** As a browser takes it: a prefix in the name is a promise that the attributes must keep. */
function parse(line: string): Kept {
  const [pair = "", ...attributes] = line.split(/; */);
  const name = pair.slice(0, pair.indexOf("="));
  const has = (attribute: string) => attributes.some((item) => item.toLowerCase() === attribute);
  const path = attributes.find((item) => /^path=/i.test(item))?.slice(5) ?? "/";
  if (/^__(Host|Secure)-/.test(name)) assert.ok(has("secure"), line);
  if (name.startsWith("__Host-")) assert.equal(path, "/", line);
  assert.ok(has("httponly") && has("samesite=lax"), line);
  const isOver = attributes.some((item) => /^expires=thu, 01 jan 1970|^max-age=0$/i.test(item));
  return { name, value: isOver ? "" : pair.slice(name.length + 1), path };
}
