import assert from "node:assert/strict";
import { after, before, beforeEach, suite, test } from "node:test";
import { decodeJwt } from "jose";
import { enableTwoFactor } from "../../../test/authenticator.ts";
import { Browser } from "../../../test/browser.ts";
import {
  CLIENT,
  type FakeGitHub,
  type FakeGoogle,
  type GitHubPerson,
  type GooglePerson,
  startFakeGitHub,
  startFakeGoogle,
} from "../../../test/identity-servers.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { createUser } from "../people/users.ts";

type Name = "github" | "google";
const NAMES: Name[] = ["github", "google"];
const SESSION = "__Host-session";

let market: Market;
let github: FakeGitHub;
let google: FakeGoogle;

before(async () => {
  [github, google] = await Promise.all([startFakeGitHub(), startFakeGoogle()]);
  market = await openMarket({
    config: { github: { ...CLIENT, issuer: github.issuer }, google: { ...CLIENT, issuer: google.issuer } },
  });
  await google.register(`${market.origin}/api/auth/callback/google`);
});
after(() => Promise.all([market.close(), github.close(), google.close()]));
beforeEach(() => {
  github.fault = google.fault = null;
  github.iss = `${github.issuer}/login/oauth`;
});

let count = 0;
const newAddress = () => `person-${++count}@example.com`;

interface Wish {
  subject?: number;
  email?: string;
  verified?: boolean;
  name?: string | null;
}

/** Somebody sits down in front of both providers. */
function sitsDown({ subject = ++count, email = newAddress(), verified = true, name = "Ada" }: Wish = {}) {
  const atGitHub: GitHubPerson = {
    id: subject,
    login: `ada-${subject}`,
    name,
    emails: [
      { email: `${subject}+ada@users.noreply.github.com`, primary: false, verified: true },
      { email, primary: true, verified },
    ],
  };
  const atGoogle: GooglePerson = {
    sub: `sub-${subject}`,
    email,
    email_verified: verified,
    ...(name !== null && { name }),
  };
  github.person = atGitHub;
  google.person = atGoogle;
  return { subject, email };
}

const start = (name: Name, returnTo?: string) =>
  `${market.origin}/api/auth/${name}${returnTo === undefined ? "" : `?returnTo=${encodeURIComponent(returnTo)}`}`;
const callbackOf = (name: Name) => `${market.origin}/api/auth/callback/${name}`;

/** Walks to the provider and back, up to the callback, which is not opened yet. */
const comesBack = (browser: Browser, name: Name, returnTo?: string) =>
  browser.followUntil(start(name, returnTo), callbackOf(name));

const openBrowser = () => new Browser(market.origin);

async function signsIn(name: Name, browser = openBrowser()) {
  const visit = await browser.get(await comesBack(browser, name));
  return { browser, visit, session: browser.cookie(SESSION) };
}

/** The sign-in was refused: a redirect to the sign-in page, with this problem, and without a session. */
function assertProblem(visit: { location: string | null }, browser: Browser, problem: string): void {
  const url = new URL(visit.location!);
  assert.equal(url.origin + url.pathname, `${market.origin}/auth/sign-in`);
  assert.equal(url.searchParams.get("problem"), problem);
  assert.equal(browser.cookie(SESSION), undefined);
}

async function whoIs(session: string): Promise<{ sub: string; email: string; name: string }> {
  assert.equal((await market.as(session).get("/v1/categories")).status, 200, "the session works");
  return decodeJwt(session);
}

const accountsOf = async (email: string) =>
  (await market.query("select * from users where lower(email) = lower($1)", [email])).rows;
const deedsOf = async (userId: string) =>
  (await market.query("select action from audit_log where actor_id = $1 order by id", [userId])).rows.map(
    ({ action }) => action,
  );

async function hasAccount(email: string, emailVerified = true): Promise<string> {
  const userId = await createUser(market.service.ctx, { email, name: "Local", emailVerified });
  return userId;
}

for (const name of NAMES) {
  suite(`signing in with ${name}`, () => {
    test("makes an account for a verified mailbox that is new here", async () => {
      const { email } = sitsDown({ name: "Ada Lovelace" });
      const { visit, session } = await signsIn(name);
      assert.equal(visit.status, 302);
      assert.equal(visit.location, `${market.origin}/auth/signed-in`);
      const claims = await whoIs(session!);
      assert.equal(claims.email, email);
      // GitHub shows the name to everybody already; Google's is not public.
      if (name === "github") assert.equal(claims.name, "Ada Lovelace");
      else assert.match(claims.name, /^Member [0-9a-f]{6}$/);
      assert.ok(visit.headers.getSetCookie().some((line) => line.startsWith("__Host-known=")));
      const [account] = await accountsOf(email);
      assert.deepEqual([account.email_verified_at, account.verified], [market.clock.now, false]);
      assert.equal(account.password_hash, null);
      assert.deepEqual(await deedsOf(account.id), ["user.registered", "session.started"]);
    });

    test("comes to the same account again, whatever the mailbox is now", async () => {
      const { subject } = sitsDown();
      const first = await whoIs((await signsIn(name)).session!);
      sitsDown({ subject, email: newAddress() });
      assert.equal((await whoIs((await signsIn(name)).session!)).sub, first.sub);
      sitsDown({ subject, verified: false });
      assert.equal((await whoIs((await signsIn(name)).session!)).sub, first.sub);
    });

    test("links an account whose mailbox was proven here, in any case of letters, and tells its owner", async () => {
      const email = newAddress();
      const userId = await hasAccount(email);
      sitsDown({ email: email.toUpperCase() });
      await whoIs((await signsIn(name)).session!);
      assert.deepEqual(await deedsOf(userId), ["identity.linked", "session.started"]);
      const { rows } = await market.query("select id, sealed_email from emails where recipient = $1", [
        email,
      ]);
      assert.equal(rows.length, 1);
      const message = JSON.parse(market.service.ctx.vault.open(rows[0].sealed_email, `mail|${rows[0].id}`));
      assert.match(message.subject, /can sign you in now/);
    });

    test("with a mailbox that the provider has not verified lets nobody in, and links nothing", async () => {
      const email = newAddress();
      const userId = await hasAccount(email);
      sitsDown({ email, verified: false });
      const { visit, browser } = await signsIn(name);
      assertProblem(visit, browser, "UNVERIFIED_EMAIL");
      const { email: unknown } = sitsDown({ verified: false });
      const second = await signsIn(name);
      assertProblem(second.visit, second.browser, "UNVERIFIED_EMAIL");
      assert.deepEqual(await accountsOf(unknown), []);
      const { rows } = await market.query("select 1 from identities where user_id = $1", [userId]);
      assert.deepEqual(rows, []);
    });

    test("takes an unproven account over: a stranger's password, second factor and sessions are gone", async () => {
      const email = newAddress();
      const userId = await hasAccount(email, false);
      await market.query("update users set password_hash = 'set by a stranger' where id = $1", [userId]);
      const strangers: Client = await market.createSession(userId);
      await enableTwoFactor(market, strangers);
      sitsDown({ email });
      await whoIs((await signsIn(name)).session!);
      assertError(await strangers.get("/v1/categories"), 401, "INVALID_API_KEY");
      const [account] = await accountsOf(email);
      assert.deepEqual(
        [account.id, account.email_verified_at, account.password_hash],
        [userId, market.clock.now, null],
      );
      assert.ok((await deedsOf(userId)).includes("mailbox.proven"));
    });

    test("does not open a banned or closed account, nor one that the ban came to after linking", async () => {
      for (const column of ["banned_at", "closed_at"]) {
        const { email } = sitsDown();
        const userId = await hasAccount(email);
        await market.query(`update users set ${column} = $1 where id = $2`, [market.clock.now, userId]);
        const unlinked = await signsIn(name);
        assertProblem(unlinked.visit, unlinked.browser, "ACCOUNT_DISABLED");
        await market.query(`update users set ${column} = null where id = $1`, [userId]);
        await whoIs((await signsIn(name)).session!);
        await market.query(`update users set ${column} = $1 where id = $2`, [market.clock.now, userId]);
        const linked = await signsIn(name);
        assertProblem(linked.visit, linked.browser, "ACCOUNT_DISABLED");
      }
    });

    test("of an account with two factors leads to the page that asks for the code, without a session", async () => {
      const { email } = sitsDown();
      const userId = await hasAccount(email);
      await enableTwoFactor(market, await market.createSession(userId));
      const browser = openBrowser();
      const visit = await browser.get(await comesBack(browser, name, "/docs?a=1#b"));
      const url = new URL(visit.location!);
      assert.equal(url.origin + url.pathname, `${market.origin}/auth/two-factor`);
      assert.deepEqual([...url.searchParams], [["returnTo", "/docs?a=1#b"]], "the challenge is in no log");
      assert.match(new URLSearchParams(url.hash.slice(1)).get("challenge")!, /^[\w-]{43}$/);
      assert.equal(browser.cookie(SESSION), undefined);
    });

    test("twice at once from two browsers makes one account", async () => {
      const { email } = sitsDown();
      const browsers = [openBrowser(), openBrowser(), openBrowser()];
      const callbacks = await Promise.all(browsers.map((browser) => comesBack(browser, name)));
      await Promise.all(browsers.map((browser, at) => browser.get(callbacks[at]!)));
      const subjects = await Promise.all(
        browsers.map(async (browser) => (await whoIs(browser.cookie(SESSION)!)).sub),
      );
      assert.equal(new Set(subjects).size, 1);
      assert.equal((await accountsOf(email)).length, 1);
    });

    test("leads back to a page of ours, and to none of anybody else", async () => {
      for (const [returnTo, location] of [
        ["/docs?tag=ai#errors", "/docs?tag=ai#errors"],
        ["https://evil.example/", "/auth/signed-in"],
        ["//evil.example", "/auth/signed-in"],
        ["/.//evil.example", "/auth/signed-in"],
        ["/\\evil.example", "/auth/signed-in"],
      ] as const) {
        sitsDown();
        const browser = openBrowser();
        const visit = await browser.get(await comesBack(browser, name, returnTo));
        assert.equal(visit.location, market.origin + location);
      }
    });

    test("sends people with state and PKCE, and back to our own origin whatever Host says", async () => {
      const visit = await openBrowser().get(start(name), {
        host: "evil.example",
        "x-forwarded-host": "evil.example",
      });
      const url = new URL(visit.location!);
      assert.equal(url.searchParams.get("redirect_uri"), callbackOf(name));
      assert.equal(url.searchParams.get("code_challenge_method"), "S256");
      assert.match(url.searchParams.get("code_challenge")!, /^[\w-]{43}$/);
      assert.match(url.searchParams.get("state")!, /^[\w-]{43}$/);
      assert.equal(url.searchParams.has("nonce"), name === "google");
      assert.equal(
        url.searchParams.get("scope"),
        name === "google" ? "openid email profile" : "read:user user:email",
      );
    });

    test("keeps the flow in a sealed cookie that scripts cannot read and other sites' requests do not carry", async () => {
      const visit = await openBrowser().get(start(name));
      const [cookie] = visit.headers.getSetCookie();
      assert.match(cookie!, new RegExp(`^__Host-flow-${name}=v1\\.`));
      for (const attribute of ["HttpOnly", "Secure", "SameSite=Lax", "Path=/", "Max-Age=600"])
        assert.ok(cookie!.includes(`; ${attribute}`), `${attribute} in ${cookie}`);
      assert.ok(cookie!.length < 4096);
      const longest = await openBrowser().get(start(name, `/${"a".repeat(1_999)}`));
      assert.ok(longest.headers.getSetCookie()[0]!.length < 4096, "browsers drop longer ones");
      assert.equal(visit.headers.get("cache-control"), "no-store");
      const state = new URL(visit.location!).searchParams.get("state")!;
      assert.ok(!cookie!.includes(state));
    });

    test("tells a program the same in JSON", async () => {
      const { email } = sitsDown();
      const browser = openBrowser();
      const json = { accept: "application/json" };
      const begun = JSON.parse((await browser.get(start(name), json)).text);
      assert.equal(begun.success, true);
      const callback = await browser.followUntil(begun.data.url, callbackOf(name));
      const done = JSON.parse((await browser.get(callback, json)).text);
      assert.equal(done.sessionToken, done.data.sessionToken);
      assert.equal((await whoIs(done.sessionToken)).email, email);
      const again = JSON.parse((await browser.get(callback, json)).text);
      assert.equal(again.error.code, "INVALID_TOKEN");
      assert.equal(again.error.details.problem, "FLOW_LOST");
    });
  });

  suite(`the callback of ${name}`, () => {
    test("without the flow cookie lets nobody in: it is another browser than the one that left (CSRF)", async () => {
      sitsDown();
      const callback = await comesBack(openBrowser(), name);
      const victim = openBrowser();
      assertProblem(await victim.get(callback), victim, "FLOW_LOST");
    });

    test("with the flow cookie of another sign-in lets nobody in (login CSRF)", async () => {
      sitsDown();
      const attackers = await comesBack(openBrowser(), name);
      const victim = openBrowser();
      await victim.get(start(name));
      assertProblem(await victim.get(attackers), victim, "FLOW_LOST");
    });

    test("with the flow cookie of the other provider lets nobody in (mix-up)", async () => {
      sitsDown();
      const other = name === "github" ? "google" : "github";
      const browser = openBrowser();
      const callback = await comesBack(browser, name);
      const cookie = browser.cookie(`__Host-flow-${name}`)!;
      const crossed = new URL(callback.replace(callbackOf(name), callbackOf(other)));
      browser.setCookie(`__Host-flow-${other}`, cookie);
      const asked = (other === "github" ? github : google).asked.length;
      assertProblem(await browser.get(crossed.href), browser, "FLOW_LOST");
      assert.equal(
        (other === "github" ? github : google).asked.length,
        asked,
        "the code went to nobody else",
      );
    });

    test("works once: neither the code nor the flow is taken again, not even at once", async () => {
      sitsDown();
      const browser = openBrowser();
      const callback = await comesBack(browser, name);
      const cookie = browser.cookie(`__Host-flow-${name}`)!;
      const twins = Array.from({ length: 6 }, openBrowser);
      for (const twin of twins) twin.setCookie(`__Host-flow-${name}`, cookie);
      await Promise.all(twins.map((twin) => twin.get(callback)));
      const sessions = twins.filter((twin) => twin.cookie(SESSION) !== undefined);
      assert.equal(sessions.length, 1);
      assertProblem(await browser.get(callback), browser, "FLOW_LOST");
      assert.equal(browser.cookie(`__Host-flow-${name}`), undefined, "the cookie is gone");
    });

    test("after ten minutes is too late", async () => {
      sitsDown();
      const browser = openBrowser();
      const callback = await comesBack(browser, name);
      market.clock.forward(10 * 60_000);
      assertProblem(await browser.get(callback), browser, "FLOW_LOST");
    });

    test("with a changed, doubled or missing state, a forged cookie or a made-up code lets nobody in", async () => {
      sitsDown();
      const changed: ((url: URL, browser: Browser) => void)[] = [
        (url) => url.searchParams.set("state", "x".repeat(43)),
        (url) => url.searchParams.append("state", url.searchParams.get("state")!),
        (url) => url.searchParams.delete("state"),
        (url) => url.searchParams.set("code", "made-up"),
        (url) => url.searchParams.append("code", "second"),
        (url) => url.searchParams.delete("code"),
        (url) => url.searchParams.set("iss", "https://evil.example"),
        (_, browser) => {
          const cookie = browser.cookie(`__Host-flow-${name}`)!;
          browser.setCookie(`__Host-flow-${name}`, `${cookie.slice(0, -2)}AA`);
        },
        (_, browser) => browser.setCookie(`__Host-flow-${name}`, '{"state":"x"}'),
      ];
      for (const change of changed) {
        const browser = openBrowser();
        const url = new URL(await comesBack(browser, name));
        change(url, browser);
        assertProblem(await browser.get(url.href), browser, "FLOW_LOST");
      }
    });

    test("of a code that was given for another PKCE challenge lets nobody in", async () => {
      sitsDown();
      const browser = openBrowser();
      const url = new URL((await browser.get(start(name))).location!);
      url.searchParams.set("code_challenge", "A".repeat(43));
      const callback = await browser.followUntil(url.href, callbackOf(name));
      assertProblem(await browser.get(callback), browser, "FLOW_LOST");
    });

    test("of somebody who said no leads back to the sign-in page with what they wanted", async () => {
      github.person = google.person = null;
      const browser = openBrowser();
      const visit = await browser.get(await comesBack(browser, name, "/docs"));
      assertProblem(visit, browser, "ACCESS_DENIED");
      assert.equal(new URL(visit.location!).searchParams.get("returnTo"), "/docs");
    });

    test("gives a session under a new id, whatever session was planted in the browser (fixation)", async () => {
      sitsDown();
      const { userId } = await market.createUser();
      const planted = await market.createSession(userId);
      const browser = openBrowser();
      browser.setCookie(SESSION, planted.key);
      const { session } = await signsIn(name, browser);
      assertError(await planted.get("/v1/categories"), 401, "INVALID_API_KEY");
      assert.notEqual(decodeJwt(session!).jti, decodeJwt(planted.key).jti);
      assert.notEqual(decodeJwt(session!).sub, decodeJwt(planted.key).sub);
    });
  });

  suite(`while ${name} fails`, () => {
    const faults = {
      "answers 500": (_: unknown, response: import("node:http").ServerResponse) => {
        response.writeHead(500, { "content-type": "application/json" }).end("{}");
        return true;
      },
      "answers HTML": (_: unknown, response: import("node:http").ServerResponse) => {
        response.writeHead(200, { "content-type": "text/html" }).end("<h1>Unicorn</h1>");
        return true;
      },
      "hangs up": (request: import("node:http").IncomingMessage) => {
        request.socket.destroy();
        return true;
      },
      "redirects elsewhere": (_: unknown, response: import("node:http").ServerResponse) => {
        response.writeHead(302, { location: "http://127.0.0.1:1/" }).end();
        return true;
      },
    };
    for (const [what, fault] of Object.entries(faults)) {
      test(`that ${what}, people are told so and the rest goes on`, async () => {
        sitsDown();
        const browser = openBrowser();
        const callback = await comesBack(browser, name);
        (name === "github" ? github : google).fault = fault;
        assertProblem(await browser.get(callback), browser, "SERVICE_UNAVAILABLE");
        assert.equal((await market.as(null).get("/healthz")).status, 200);
      });
    }
  });
}

suite("GitHub", () => {
  test("is known by its own name in `iss`, and without one as it was until 2026", async () => {
    for (const iss of [`${github.issuer}/login/oauth`, null]) {
      sitsDown();
      github.iss = iss;
      await whoIs((await signsIn("github")).session!);
    }
  });

  test("says no with HTTP 200, and nobody is let in", async () => {
    sitsDown();
    const browser = openBrowser();
    const callback = await comesBack(browser, "github");
    github.fault = (request, response) => {
      if (!request.url!.startsWith("/login/oauth/access_token")) return false;
      response
        .writeHead(200, { "content-type": "application/json; charset=utf-8" })
        .end(
          '{"error":"incorrect_client_credentials","error_description":"The client_id and/or client_secret"}',
        );
      return true;
    };
    assertProblem(await browser.get(callback), browser, "FLOW_LOST");
    assert.ok(market.logs.some((line) => line.includes("incorrect_client_credentials")));
  });

  test("may know several mailboxes: only the primary one counts, and only verified", async () => {
    const { subject, email } = sitsDown();
    const victim = newAddress();
    await hasAccount(victim);
    github.person!.emails = [
      { email: victim, primary: false, verified: true },
      { email, primary: true, verified: false },
    ];
    const { visit, browser } = await signsIn("github");
    assertProblem(visit, browser, "UNVERIFIED_EMAIL");
    github.person!.emails = [];
    const none = await signsIn("github");
    assertProblem(none.visit, none.browser, "UNVERIFIED_EMAIL");
    const { rows } = await market.query("select 1 from identities where subject = $1", [String(subject)]);
    assert.deepEqual(rows, []);
  });

  test("people without a name are called by their login, and nobody by a text of many lines", async () => {
    const { subject } = sitsDown({ name: null });
    assert.equal((await whoIs((await signsIn("github")).session!)).name, `ada-${subject}`);
    sitsDown({ name: `  Ada\r\nBcc: x\u2028${"y".repeat(200)}` });
    const { name } = await whoIs((await signsIn("github")).session!);
    assert.ok(name.startsWith("Ada Bcc: x y"));
    assert.equal(name.length, 100);
  });
});

suite("Google", () => {
  test("answers a nonce that is not ours: nobody is let in", async () => {
    sitsDown();
    const browser = openBrowser();
    const url = new URL((await browser.get(start("google"))).location!);
    url.searchParams.set("nonce", "of-another-flow");
    const callback = await browser.followUntil(url.href, callbackOf("google"));
    assertProblem(await browser.get(callback), browser, "FLOW_LOST");
  });

  test("with an ID token that says verified as a text, not as true, counts as unverified", async () => {
    sitsDown();
    (google.person as { email_verified: unknown }).email_verified = "true";
    const { visit, browser } = await signsIn("google");
    assertProblem(visit, browser, "UNVERIFIED_EMAIL");
  });

  test("with a mailbox that mail servers read differently lets nobody in", async () => {
    for (const email of [
      "ada＠example.com",
      "ada@example.com\r\nbcc: eve@example.com",
      '"a,b"@example.com',
      "a@b",
    ]) {
      sitsDown({ email });
      const { visit, browser } = await signsIn("google");
      assertProblem(visit, browser, "UNVERIFIED_EMAIL");
    }
  });
});

suite("one person with both providers", () => {
  test("has one account, and a same subject at the other provider is somebody else", async () => {
    const { email } = sitsDown();
    const first = await whoIs((await signsIn("github")).session!);
    assert.equal((await whoIs((await signsIn("google")).session!)).sub, first.sub);
    assert.equal((await accountsOf(email)).length, 1);
    google.person = { sub: String(github.person!.id), email: newAddress(), email_verified: true };
    assert.notEqual((await whoIs((await signsIn("google")).session!)).sub, first.sub);
  });
});

suite("a provider", () => {
  test("that nobody knows is 404, and so is one that is not set up, which says what is missing", async () => {
    const bare = await openMarket();
    try {
      for (const path of ["/api/auth/gitlab", "/api/auth/callback/gitlab", "/api/auth/constructor"])
        assertError(await bare.as(null).get(path), 404, "NOT_FOUND");
      for (const path of ["/api/auth/github", "/api/auth/callback/github", "/api/auth/google"]) {
        const reply = await bare.as(null).get(path);
        assertError(reply, 404, "NOT_FOUND");
        assert.match(reply.body.error.message, /(GITHUB|GOOGLE)_CLIENT_ID/);
      }
    } finally {
      await bare.close();
    }
  });

  test("that is down when somebody begins is told on the sign-in page, and asked again by the next one", async () => {
    const fake = await startFakeGoogle();
    const own = await openMarket({ config: { google: { ...CLIENT, issuer: fake.issuer } } });
    try {
      const visit = await openBrowser().get(`${own.origin}/api/auth/google?returnTo=/docs`);
      const url = new URL(visit.location!);
      assert.equal(url.pathname, "/auth/sign-in");
      assert.equal(url.searchParams.get("problem"), "SERVICE_UNAVAILABLE");
      assert.equal(url.searchParams.get("returnTo"), "/docs");
      await fake.register(`${own.origin}/api/auth/callback/google`);
      const next = await openBrowser().get(`${own.origin}/api/auth/google`);
      assert.ok(next.location!.startsWith(fake.issuer));
    } finally {
      await Promise.all([own.close(), fake.close()]);
    }
  });

  test("is not the end of a way that one network goes more than a hundred times in ten minutes", async () => {
    const own = await openMarket({
      config: { github: { ...CLIENT, issuer: "http://127.0.0.1:1" }, trustProxy: ["127.0.0.1"] },
    });
    try {
      const begin = (ip: string, accept = "application/json") =>
        own.as(null).get("/api/auth/github", { "x-forwarded-for": ip, accept });
      for (let n = 0; n < 100; n++) assert.equal((await begin("2001:db8::1")).status, 200);
      const reply = await begin("2001:db8::ffff");
      assertError(reply, 429, "RATE_LIMIT_EXCEEDED");
      assert.equal(reply.headers.get("retry-after"), "600");
      const page = await begin("2001:db8::1", "text/html");
      assert.match(page.headers.get("location")!, /^\/auth\/sign-in\?problem=RATE_LIMIT_EXCEEDED&/);
      assert.equal((await begin("2001:db8:0:1::1")).status, 200, "the neighbour goes on");
    } finally {
      await own.close();
    }
  });

  test("that never answers is given up after a while", { timeout: 120_000 }, async () => {
    const fake = await startFakeGitHub();
    const own = await openMarket({
      config: { github: { ...CLIENT, issuer: fake.issuer } },
      identityProviderMs: 50,
    });
    try {
      fake.person = { id: 1, login: "slow", name: null, emails: [] };
      const browser = openBrowser();
      const callback = await browser.followUntil(
        `${own.origin}/api/auth/github`,
        `${own.origin}/api/auth/callback`,
      );
      fake.fault = () => true;
      const visit = await browser.get(callback);
      assert.equal(new URL(visit.location!).searchParams.get("problem"), "SERVICE_UNAVAILABLE");
    } finally {
      await Promise.all([own.close(), fake.close()]);
    }
  });
});

test("no code, token, state or client secret stands in the log, nor in the clear in the database", async () => {
  sitsDown();
  const browser = openBrowser();
  const callback = new URL(await comesBack(browser, "github"));
  const state = callback.searchParams.get("state")!;
  const code = callback.searchParams.get("code")!;
  const cookie = browser.cookie("__Host-flow-github")!;
  await browser.get(callback.href);
  const session = browser.cookie(SESSION)!;
  const { rows } = await market.query(
    "select t::text as text from one_time_tokens t union all select t::text from sessions t",
  );
  const kept = rows.map(({ text }) => text).join("\n") + market.logs.join("\n");
  for (const secret of [state, code, cookie, session, CLIENT.clientSecret, "gho_"])
    assert.ok(!kept.includes(secret), secret);
});
