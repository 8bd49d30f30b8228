import assert from "node:assert/strict";

export interface Visit {
  url: string;
  status: number;
  headers: Headers;
  text: string;
  /** Where a redirect leads; null when it is none. */
  location: string | null;
}

/** A browser without a window: keeps cookies by origin, and follows redirects one at a time. */
export interface Browser {
  get(url: string, headers?: Record<string, string>): Promise<Visit>;
  /** Follows redirects until one leads to a URL that begins so, without opening that. */
  goUntil(url: string, stopsAt: string): Promise<string>;
  cookie(origin: string, name: string): string | undefined;
  setCookie(origin: string, name: string, value: string): void;
}

const MAX_REDIRECTS = 12;

export function openBrowser(): Browser {
  const jars = new Map<string, Map<string, string>>();
  const jarOf = (url: string) => {
    const { origin } = new URL(url);
    const jar = jars.get(origin) ?? new Map<string, string>();
    jars.set(origin, jar);
    return jar;
  };
  const browser: Browser = {
    async get(url, headers = {}) {
      const jar = jarOf(url);
      const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
      const response = await fetch(url, {
        redirect: "manual",
        headers: { accept: "text/html", ...(cookie && { cookie }), ...headers },
      });
      for (const line of response.headers.getSetCookie()) keep(jar, line);
      const location = response.headers.get("location");
      return {
        url,
        status: response.status,
        headers: response.headers,
        text: await response.text(),
        location: location === null ? null : new URL(location, url).href,
      };
    },
    async goUntil(url, stopsAt) {
      for (let n = 0; n < MAX_REDIRECTS; n++) {
        if (url.startsWith(stopsAt)) return url;
        const { location, status, text } = await browser.get(url);
        assert.ok(location, `${url} answered ${status} and leads nowhere: ${text}`);
        url = location;
      }
      throw new Error(`${url} goes in circles`);
    },
    cookie: (origin, name) => jarOf(origin).get(name),
    setCookie: (origin, name, value) => void jarOf(origin).set(name, value),
  };
  return browser;
}

function keep(jar: Map<string, string>, line: string): void {
  const [pair = "", ...attributes] = line.split(/; */);
  const at = pair.indexOf("=");
  const isGone = attributes.some((attribute) => /^(max-age=0|expires=thu, 01 jan 1970.*)$/i.test(attribute));
  if (isGone) jar.delete(pair.slice(0, at));
  else jar.set(pair.slice(0, at), pair.slice(at + 1));
}
