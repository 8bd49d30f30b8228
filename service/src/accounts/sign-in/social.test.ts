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

interface UserInput {
  subject?: number;
  email?: string;
  verified?: boolean;
  name?: string | null;
}

/** Sets the user that both providers sign in. */
function setProviderUser({
  subject = ++count,
  email = newAddress(),
  verified = true,
  name = "Ada",
}: UserInput = {}) {
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

/** Follows the redirects to the provider and back. Returns the callback URL without opening it. */
const reachCallback = (browser: Browser, name: Name, returnTo?: string) =>
  browser.followUntil(start(name, returnTo), callbackOf(name));

const openBrowser = () => new Browser(market.origin);

async function signIn(name: Name, browser = openBrowser()) {
  const visit = await browser.get(await reachCallback(browser, name));
  return { browser, visit, session: browser.cookie(SESSION) };
}

function assertProblem(visit: { location: string | null }, browser: Browser, problem: string): void {
  const url = new URL(visit.location!);
  assert.equal(url.origin + url.pathname, `${market.origin}/auth/sign-in`);
  assert.equal(url.searchParams.get("problem"), problem);
  assert.equal(browser.cookie(SESSION), undefined);
}

async function claimsOf(session: string): Promise<{ sub: string; email: string; name: string }> {
  assert.equal((await market.as(session).get("/v1/categories")).status, 200, "the session works");
  return decodeJwt(session);
}

const accountsOf = async (email: string) =>
  (await market.query("select * from users where lower(email) = lower($1)", [email])).rows;
const auditActionsOf = async (userId: string) =>
  (await market.query("select action from audit_log where actor_id = $1 order by id", [userId])).rows.map(
    ({ action }) => action,
  );

async function hasAccount(email: string, emailVerified = true): Promise<string> {
  const userId = await createUser(market.service.ctx, { email, name: "Local", emailVerified });
  return userId;
}

for (const name of NAMES) {
  suite(`sign-in with ${name}`, () => {
    test("a new verified address: creates an account", async () => {
      const { email } = setProviderUser({ name: "Ada Lovelace" });
      const { visit, session } = await signIn(name);
      assert.equal(visit.status, 302);
      assert.equal(visit.location, `${market.origin}/auth/signed-in`);
      const claims = await claimsOf(session!);
      assert.equal(claims.email, email);
      // Names are public at GitHub and private at Google.
      if (name === "github") assert.equal(claims.name, "Ada Lovelace");
      else assert.match(claims.name, /^Member [0-9a-f]{6}$/);
      assert.ok(visit.headers.getSetCookie().some((line) => line.startsWith("__Host-known=")));
      const [account] = await accountsOf(email);
      assert.deepEqual([account.email_verified_at, account.verified], [market.clock.now, false]);
      assert.equal(account.password_hash, null);
      assert.deepEqual(await auditActionsOf(account.id), ["user.registered", "session.started"]);
    });

    test("a known identity, the address changed: the same account", async () => {
      const { subject } = setProviderUser();
      const first = await claimsOf((await signIn(name)).session!);
      setProviderUser({ subject, email: newAddress() });
      assert.equal((await claimsOf((await signIn(name)).session!)).sub, first.sub);
      setProviderUser({ subject, verified: false });
      assert.equal((await claimsOf((await signIn(name)).session!)).sub, first.sub);
    });

    test("an address verified here, in any case: links the account and emails the owner", async () => {
      const email = newAddress();
      const userId = await hasAccount(email);
      setProviderUser({ email: email.toUpperCase() });
      await claimsOf((await signIn(name)).session!);
      assert.deepEqual(await auditActionsOf(userId), ["identity.linked", "session.started"]);
      const { rows } = await market.query("select id, sealed_email from emails where recipient = $1", [
        email,
      ]);
      assert.equal(rows.length, 1);
      const message = JSON.parse(market.service.ctx.vault.open(rows[0].sealed_email, `mail|${rows[0].id}`));
      assert.match(message.subject, /can sign you in now/);
    });

    test("unlinked: no longer known, its other sessions end, the owner gets an email", async () => {
      const { email } = setProviderUser();
      const [first, second] = [(await signIn(name)).session!, (await signIn(name)).session!];
      const owner = market.as(first);
      const { providers } = (await owner.get("/v1/account/sign-in-providers")).body.data;
      assert.deepEqual(
        providers.map(({ provider, available, linkedAt }: Record<string, unknown>) => [
          provider,
          available,
          linkedAt !== null,
        ]),
        NAMES.map((each) => [each, true, each === name]),
      );
      const path = `/v1/account/sign-in-providers/${name}`;
      const replies = await Promise.all([owner.delete(path), owner.delete(path)]);
      assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 404]);
      const { body } = replies.find(({ status }) => status === 200)!;
      assert.deepEqual(body.data, { provider: name, sessionsEnded: 1 });
      assert.equal((await market.as(second).get("/v1/account")).status, 401);
      const [account] = await accountsOf(email);
      assert.deepEqual((await auditActionsOf(account.id)).slice(-1), ["identity.unlinked"]);
      setProviderUser({ subject: count, email: newAddress() });
      assert.notEqual((await claimsOf((await signIn(name)).session!)).sub, decodeJwt(first).sub);
    });

    test("an address that the provider has not verified: refused, nothing linked", async () => {
      const email = newAddress();
      const userId = await hasAccount(email);
      setProviderUser({ email, verified: false });
      const { visit, browser } = await signIn(name);
      assertProblem(visit, browser, "UNVERIFIED_EMAIL");
      const { email: unknown } = setProviderUser({ verified: false });
      const second = await signIn(name);
      assertProblem(second.visit, second.browser, "UNVERIFIED_EMAIL");
      assert.deepEqual(await accountsOf(unknown), []);
      const { rows } = await market.query("select 1 from identities where user_id = $1", [userId]);
      assert.deepEqual(rows, []);
    });

    test("an unverified account: a stranger's password, second factor and sessions are deleted", async () => {
      const email = newAddress();
      const userId = await hasAccount(email, false);
      await market.query("update users set password_hash = 'set by a stranger' where id = $1", [userId]);
      const strangers: Client = await market.createSession(userId);
      await enableTwoFactor(market, strangers);
      setProviderUser({ email });
      await claimsOf((await signIn(name)).session!);
      assertError(await strangers.get("/v1/categories"), 401, "INVALID_API_KEY");
      const [account] = await accountsOf(email);
      assert.deepEqual(
        [account.id, account.email_verified_at, account.password_hash],
        [userId, market.clock.now, null],
      );
      assert.ok((await auditActionsOf(userId)).includes("mailbox.proven"));
    });

    test("a banned or closed account, also after linking: refused", async () => {
      for (const column of ["banned_at", "closed_at"]) {
        const { email } = setProviderUser();
        const userId = await hasAccount(email);
        await market.query(`update users set ${column} = $1 where id = $2`, [market.clock.now, userId]);
        const unlinked = await signIn(name);
        assertProblem(unlinked.visit, unlinked.browser, "ACCOUNT_DISABLED");
        await market.query(`update users set ${column} = null where id = $1`, [userId]);
        await claimsOf((await signIn(name)).session!);
        await market.query(`update users set ${column} = $1 where id = $2`, [market.clock.now, userId]);
        const linked = await signIn(name);
        assertProblem(linked.visit, linked.browser, "ACCOUNT_DISABLED");
      }
    });

    test("an account with two factors: redirects to the page for the code, without a session", async () => {
      const { email } = setProviderUser();
      const userId = await hasAccount(email);
      await enableTwoFactor(market, await market.createSession(userId));
      const browser = openBrowser();
      const visit = await browser.get(await reachCallback(browser, name, "/docs?a=1#b"));
      const url = new URL(visit.location!);
      assert.equal(url.origin + url.pathname, `${market.origin}/auth/two-factor`);
      assert.deepEqual([...url.searchParams], [["returnTo", "/docs?a=1#b"]], "the challenge is in no log");
      assert.match(new URLSearchParams(url.hash.slice(1)).get("challenge")!, /^[\w-]{43}$/);
      assert.equal(browser.cookie(SESSION), undefined);
    });

    test("two browsers at once: one account", async () => {
      const { email } = setProviderUser();
      const browsers = [openBrowser(), openBrowser(), openBrowser()];
      const callbacks = await Promise.all(browsers.map((browser) => reachCallback(browser, name)));
      await Promise.all(browsers.map((browser, at) => browser.get(callbacks[at]!)));
      const subjects = await Promise.all(
        browsers.map(async (browser) => (await claimsOf(browser.cookie(SESSION)!)).sub),
      );
      assert.equal(new Set(subjects).size, 1);
      assert.equal((await accountsOf(email)).length, 1);
    });

    test("returnTo: own pages only", async () => {
      for (const [returnTo, location] of [
        ["/docs?tag=ai#errors", "/docs?tag=ai#errors"],
        ["https://evil.example/", "/auth/signed-in"],
        ["//evil.example", "/auth/signed-in"],
        ["/.//evil.example", "/auth/signed-in"],
        ["/\\evil.example", "/auth/signed-in"],
      ] as const) {
        setProviderUser();
        const browser = openBrowser();
        const visit = await browser.get(await reachCallback(browser, name, returnTo));
        assert.equal(visit.location, market.origin + location);
      }
    });

    test("redirects with state and PKCE to the public origin, whatever Host says", async () => {
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

    test("stores the flow in a sealed, HttpOnly, SameSite cookie", async () => {
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

    test("a program: gets the same as JSON", async () => {
      const { email } = setProviderUser();
      const browser = openBrowser();
      const json = { accept: "application/json" };
      const begun = JSON.parse((await browser.get(start(name), json)).text);
      assert.equal(begun.success, true);
      const callback = await browser.followUntil(begun.data.url, callbackOf(name));
      const done = JSON.parse((await browser.get(callback, json)).text);
      assert.equal(done.sessionToken, done.data.sessionToken);
      assert.equal((await claimsOf(done.sessionToken)).email, email);
      const again = JSON.parse((await browser.get(callback, json)).text);
      assert.equal(again.error.code, "INVALID_TOKEN");
      assert.equal(again.error.details.problem, "FLOW_LOST");
    });
  });

  suite(`the callback of ${name}`, () => {
    test("no flow cookie: refused (CSRF)", async () => {
      setProviderUser();
      const callback = await reachCallback(openBrowser(), name);
      const victim = openBrowser();
      assertProblem(await victim.get(callback), victim, "FLOW_LOST");
    });

    test("the flow cookie of another sign-in: refused (login CSRF)", async () => {
      setProviderUser();
      const attackers = await reachCallback(openBrowser(), name);
      const victim = openBrowser();
      await victim.get(start(name));
      assertProblem(await victim.get(attackers), victim, "FLOW_LOST");
    });

    test("the flow cookie of the other provider: refused (mix-up)", async () => {
      setProviderUser();
      const other = name === "github" ? "google" : "github";
      const browser = openBrowser();
      const callback = await reachCallback(browser, name);
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

    test("a reused code or flow, in parallel too: refused", async () => {
      setProviderUser();
      const browser = openBrowser();
      const callback = await reachCallback(browser, name);
      const cookie = browser.cookie(`__Host-flow-${name}`)!;
      const twins = Array.from({ length: 6 }, openBrowser);
      for (const twin of twins) twin.setCookie(`__Host-flow-${name}`, cookie);
      await Promise.all(twins.map((twin) => twin.get(callback)));
      const sessions = twins.filter((twin) => twin.cookie(SESSION) !== undefined);
      assert.equal(sessions.length, 1);
      assertProblem(await browser.get(callback), browser, "FLOW_LOST");
      assert.equal(browser.cookie(`__Host-flow-${name}`), undefined, "the cookie is gone");
    });

    test("after ten minutes: refused", async () => {
      setProviderUser();
      const browser = openBrowser();
      const callback = await reachCallback(browser, name);
      market.clock.forward(10 * 60_000);
      assertProblem(await browser.get(callback), browser, "FLOW_LOST");
    });

    test("a changed, doubled or missing state, a forged cookie or code: refused", async () => {
      setProviderUser();
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
        const url = new URL(await reachCallback(browser, name));
        change(url, browser);
        assertProblem(await browser.get(url.href), browser, "FLOW_LOST");
      }
    });

    test("a code of another PKCE challenge: refused", async () => {
      setProviderUser();
      const browser = openBrowser();
      const url = new URL((await browser.get(start(name))).location!);
      url.searchParams.set("code_challenge", "A".repeat(43));
      const callback = await browser.followUntil(url.href, callbackOf(name));
      assertProblem(await browser.get(callback), browser, "FLOW_LOST");
    });

    test("the user declined: redirects to sign-in with returnTo", async () => {
      github.person = google.person = null;
      const browser = openBrowser();
      const visit = await browser.get(await reachCallback(browser, name, "/docs"));
      assertProblem(visit, browser, "ACCESS_DENIED");
      assert.equal(new URL(visit.location!).searchParams.get("returnTo"), "/docs");
    });

    test("a planted session: replaced by one with a new id (session fixation)", async () => {
      setProviderUser();
      const { userId } = await market.createUser();
      const planted = await market.createSession(userId);
      const browser = openBrowser();
      browser.setCookie(SESSION, planted.key);
      const { session } = await signIn(name, browser);
      assertError(await planted.get("/v1/categories"), 401, "INVALID_API_KEY");
      assert.notEqual(decodeJwt(session!).jti, decodeJwt(planted.key).jti);
      assert.notEqual(decodeJwt(session!).sub, decodeJwt(planted.key).sub);
    });
  });

  suite(`${name} fails`, () => {
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
      test(`it ${what}: an error for the user, other sign-ins work`, async () => {
        setProviderUser();
        const browser = openBrowser();
        const callback = await reachCallback(browser, name);
        (name === "github" ? github : google).fault = fault;
        assertProblem(await browser.get(callback), browser, "SERVICE_UNAVAILABLE");
        assert.equal((await market.as(null).get("/healthz")).status, 200);
      });
    }
  });
}

suite("GitHub", () => {
  test("`iss`: must be GitHub's name where present; missing is accepted", async () => {
    for (const iss of [`${github.issuer}/login/oauth`, null]) {
      setProviderUser();
      github.iss = iss;
      await claimsOf((await signIn("github")).session!);
    }
  });

  test("an error with HTTP 200: refused", async () => {
    setProviderUser();
    const browser = openBrowser();
    const callback = await reachCallback(browser, "github");
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

  test("several addresses: the primary one counts, if verified", async () => {
    const { subject, email } = setProviderUser();
    const victim = newAddress();
    await hasAccount(victim);
    github.person!.emails = [
      { email: victim, primary: false, verified: true },
      { email, primary: true, verified: false },
    ];
    const { visit, browser } = await signIn("github");
    assertProblem(visit, browser, "UNVERIFIED_EMAIL");
    github.person!.emails = [];
    const none = await signIn("github");
    assertProblem(none.visit, none.browser, "UNVERIFIED_EMAIL");
    const { rows } = await market.query("select 1 from identities where subject = $1", [String(subject)]);
    assert.deepEqual(rows, []);
  });

  test("no name: the login is the name; a name of many lines is not used", async () => {
    const { subject } = setProviderUser({ name: null });
    assert.equal((await claimsOf((await signIn("github")).session!)).name, `ada-${subject}`);
    setProviderUser({ name: `  Ada\r\nBcc: x\u2028${"y".repeat(200)}` });
    const { name } = await claimsOf((await signIn("github")).session!);
    assert.ok(name.startsWith("Ada Bcc: x y"));
    assert.equal(name.length, 100);
  });
});

suite("Google", () => {
  test("a wrong nonce: refused", async () => {
    setProviderUser();
    const browser = openBrowser();
    const url = new URL((await browser.get(start("google"))).location!);
    url.searchParams.set("nonce", "of-another-flow");
    const callback = await browser.followUntil(url.href, callbackOf("google"));
    assertProblem(await browser.get(callback), browser, "FLOW_LOST");
  });

  test("email_verified as a text: counts as unverified", async () => {
    setProviderUser();
    (google.person as { email_verified: unknown }).email_verified = "true";
    const { visit, browser } = await signIn("google");
    assertProblem(visit, browser, "UNVERIFIED_EMAIL");
  });

  test("an address that mail servers read differently: refused", async () => {
    for (const email of [
      "ada＠example.com",
      "ada@example.com\r\nbcc: eve@example.com",
      '"a,b"@example.com',
      "a@b",
    ]) {
      setProviderUser({ email });
      const { visit, browser } = await signIn("google");
      assertProblem(visit, browser, "UNVERIFIED_EMAIL");
    }
  });
});

suite("one user with both providers", () => {
  test("one account; the same subject at the other provider is another user", async () => {
    const { email } = setProviderUser();
    const first = await claimsOf((await signIn("github")).session!);
    assert.equal((await claimsOf((await signIn("google")).session!)).sub, first.sub);
    assert.equal((await accountsOf(email)).length, 1);
    google.person = { sub: String(github.person!.id), email: newAddress(), email_verified: true };
    assert.notEqual((await claimsOf((await signIn("google")).session!)).sub, first.sub);
  });
});

suite("a provider", () => {
  test("unknown or not configured: 404, with what is missing", async () => {
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

  test("down at the start: an error on the sign-in page, and a new request next time", async () => {
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

  test("over a hundred sign-ins from one network in ten minutes: limited", async () => {
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

  test("no answer: a timeout", { timeout: 120_000 }, async () => {
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

test("code, token, state and client secret: not in the log, not in clear in the database", async () => {
  setProviderUser();
  const browser = openBrowser();
  const callback = new URL(await reachCallback(browser, "github"));
  const state = callback.searchParams.get("state")!;
  const code = callback.searchParams.get("code")!;
  const cookie = browser.cookie("__Host-flow-github")!;
  await browser.get(callback.href);
  const session = browser.cookie(SESSION)!;
  const { rows } = await market.query(
    "select t::text as text from one_time_tokens t union all select t::text from sessions t",
  );
  const stored = rows.map(({ text }) => text).join("\n") + market.logs.join("\n");
  for (const secret of [state, code, cookie, session, CLIENT.clientSecret, "gho_"])
    assert.ok(!stored.includes(secret), secret);
});
