import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { type Endpoint, endpoints } from "@stoa/contract";
import { haiku } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { SESSION_COOKIE } from "./authenticate.ts";

let market: Market;
let member: Client;
let session: Client;
let cookie: string;
before(async () => {
  market = await openMarket();
  member = await market.createUser();
  session = await market.createSession(member.userId);
  cookie = `${SESSION_COOKIE}=${session.key}`;
});
after(() => market.close());

const browser = () => market.as(null);
/** Creates a draft, as an example of a change. */
const change = (headers: Record<string, string>) => browser().post("/v1/products", haiku, headers);

function assertForeign(reply: Reply) {
  const details = assertError(reply, 403, "UNAUTHORIZED");
  assert.equal(details.required, "same-origin");
}

async function drafts(): Promise<number> {
  return (await member.get("/v1/products?author=me")).body.meta.total;
}

/** The status of each set of headers. Asserts that refusals wrote nothing. */
async function verdicts(ways: Record<string, Record<string, string>>) {
  const before = await drafts();
  const made: string[] = [];
  for (const [name, headers] of Object.entries(ways)) {
    const reply = await change({ cookie, ...headers });
    if (reply.status === 201) made.push(name);
    else assertForeign(reply);
  }
  assert.equal(await drafts(), before + made.length);
  return made;
}

suite("a change with a session cookie (CSRF)", () => {
  test("Sec-Fetch-Site: same-origin passes, any other value is refused", async () => {
    const made = await verdicts({
      own: { "sec-fetch-site": "same-origin" },
      "a page of another site": { "sec-fetch-site": "cross-site" },
      "a sub-domain": { "sec-fetch-site": "same-site" },
      "a bookmark": { "sec-fetch-site": "none" },
      nonsense: { "sec-fetch-site": "SAME-ORIGIN" },
      nothing: { "sec-fetch-site": "" },
    });
    assert.deepEqual(made, ["own"]);
  });

  test("no Sec-Fetch-Site: Origin must match exactly", async () => {
    const { protocol, hostname, port } = new URL(market.origin);
    const made = await verdicts({
      own: { origin: market.origin },
      foreign: { origin: "https://evil.example" },
      null: { origin: "null" },
      "our origin as a beginning": { origin: `${market.origin}.evil.example` },
      "our origin as an end": { origin: `https://evil.example/${market.origin}` },
      "another port": { origin: `${protocol}//${hostname}:${Number(port) + 1}` },
      "another scheme": { origin: `https://${hostname}:${port}` },
      "another name of this machine": { origin: `${protocol}//localhost:${port}` },
    });
    assert.deepEqual(made, ["own"]);
  });

  test("both headers: Sec-Fetch-Site decides, since a page cannot set it", async () => {
    const made = await verdicts({
      lying: { "sec-fetch-site": "cross-site", origin: market.origin, "x-requested-with": "XMLHttpRequest" },
    });
    assert.deepEqual(made, []);
  });

  test("neither header: requires a header that no form can send", async () => {
    const made = await verdicts({ bare: {}, asked: { "x-requested-with": "fetch" } });
    assert.deepEqual(made, ["asked"]);
  });

  for (const endpoint of endpoints.filter(({ method, base }) => method !== "GET" && base === "/v1")) {
    test(`from another site: refused on ${endpoint.name}`, async () => {
      assertForeign(await call(endpoint, { cookie, "sec-fetch-site": "cross-site" }));
      assertForeign(await call(endpoint, { cookie, origin: "https://evil.example" }));
      assertForeign(await call(endpoint, { cookie }));
    });
  }

  test("refused before the path is checked", async () => {
    assertForeign(await browser().post("/v1/nothing", {}, { cookie }));
  });

  test("an invalid cookie: 401, not 403, so another site learns nothing", async () => {
    const reply = await change({ cookie: `${SESSION_COOKIE}=x.y.z`, "sec-fetch-site": "cross-site" });
    assertError(reply, 401, "INVALID_API_KEY");
  });
});

const call = ({ method, base, path }: Endpoint, headers: Record<string, string>) =>
  browser().request(method, base + path.replace(/:\w+/g, "nothing"), { headers });

test("reads: allowed from anywhere, so that links work", async () => {
  for (const site of ["cross-site", "same-site", "none"])
    assert.equal((await browser().get("/v1/account", { cookie, "sec-fetch-site": site })).status, 200);
});

test("keys and session tokens in the header: no check", async () => {
  const foreign = { "sec-fetch-site": "cross-site", origin: "https://app.example" };
  for (const credential of [member.key, session.key]) {
    const reply = await change({ authorization: `Bearer ${credential}`, ...foreign });
    assert.equal(reply.status, 201, reply.text);
  }
  const reply = await browser().post(`/v1/products?api_key=${member.key}`, haiku, foreign);
  assert.equal(reply.status, 201, reply.text);
});

suite("sign-in (login CSRF)", () => {
  // A read changes nothing, and browsers show its answer to our origin only.
  const atSignIn = endpoints.filter(({ base, method }) => base === "/api/auth" && method !== "GET");

  for (const endpoint of atSignIn) {
    test(`from another site: refused at ${endpoint.name}`, async () => {
      assertForeign(await call(endpoint, { "sec-fetch-site": "cross-site" }));
      assertForeign(await call(endpoint, { "sec-fetch-site": "same-site" }));
      assertForeign(await call(endpoint, { origin: "https://evil.example" }));
      assertForeign(await call(endpoint, { origin: "null" }));
    });

    test(`from own pages and programs: allowed at ${endpoint.name}`, async () => {
      const own: Record<string, string>[] = [
        { "sec-fetch-site": "same-origin" },
        { origin: market.origin },
        {},
      ];
      for (const headers of own) assert.notEqual((await call(endpoint, headers)).status, 403);
    });
  }
});
