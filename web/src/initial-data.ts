/** What the service writes into the page: whether somebody is signed in, and responses that the first view needs. */
export interface InitialData {
  environment: "test" | "production";
  isSignedIn: boolean;
  /** By path and query: `/products?limit=8`. Parameters are sorted by name. */
  responses: Record<
    string,
    { status: number; etag?: string; retryAfter?: string; uses?: number; body: unknown }
  >;
}

function readInitialData(): InitialData {
  const text = document.getElementById("initial-data")?.textContent;
  if (!text) throw new Error("The page has no initial data");
  return JSON.parse(text) as InitialData;
}

export const initialData = readInitialData();

const FIRST_VIEW_MS = 10_000;

/** What the first view did not use is old when a click needs it. */
function endFirstView(): void {
  initialData.responses = {};
}
setTimeout(endFirstView, FIRST_VIEW_MS);
for (const input of ["pointerdown", "keydown"])
  addEventListener(input, endFirstView, { once: true, capture: true });

/** Answers a GET from the page if the service sent its response there, and only in the first view: later requests must see changes. */
export const fetchWithInitialData: typeof fetch = (input, init) => {
  const key = init?.method === "GET" ? keyOf(new URL(String(input))) : "";
  const stored = initialData.responses[key];
  if (stored === undefined) return fetch(input, init);
  const { status, etag, retryAfter, uses = 1, body } = stored;
  if (uses > 1) stored.uses = uses - 1;
  else delete initialData.responses[key];
  const headers = {
    "content-type": "application/json",
    ...(etag !== undefined && { etag }),
    ...(retryAfter !== undefined && { "retry-after": retryAfter }),
  };
  return Promise.resolve(new Response(JSON.stringify(body), { status, headers }));
};

function keyOf(url: URL): string {
  url.searchParams.sort();
  return url.pathname.replace(/^\/v1/, "") + url.search;
}
