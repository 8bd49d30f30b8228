import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { fieldsIn, idsIn, mustBeLabelled, mustHaveNothingInline, visibleText } from "../../../test/markup.ts";

let market: Market;
let nobody: Client;
let cookie: string;
before(async () => {
  market = await openMarket();
  nobody = market.as(null);
  const { userId } = await market.createUser({ name: 'Ada <Lovelace> & "Co"' });
  cookie = `__Host-session=${(await market.createSession(userId)).key}`;
});
after(() => market.close());

const forAnybody = [
  "/auth/sign-in",
  "/auth/sign-in?with=password",
  "/auth/register",
  "/auth/check-mail",
  "/auth/check-mail?after=registration",
  "/auth/verify",
  "/auth/two-factor",
  "/auth/first-admin",
];
const forSignedIn = ["/auth/signed-in", "/auth/password", "/auth/two-factor/set-up"];
const signedIn = (path: string) => nobody.get(path, { cookie });

suite("every page", () => {
  for (const path of [...forAnybody, ...forSignedIn]) {
    test(`${path}: Cache-Control, frame and script policies forbid all`, async () => {
      const reply = await signedIn(path);
      assert.equal(reply.status, 200, reply.text);
      assert.equal(reply.headers.get("content-type"), "text/html; charset=utf-8");
      assert.equal(reply.headers.get("cache-control"), "no-store");
      const policy = reply.headers.get("content-security-policy")!;
      for (const rule of ["default-src 'none'", "script-src 'self'", "style-src 'self'"])
        assert.ok(policy.split("; ").includes(rule), policy);
      assert.match(policy, /frame-ancestors 'none'.*base-uri 'none'/);
      assert.doesNotMatch(policy, /unsafe|\*|https?:/);
      mustHaveNothingInline(reply.text);
    });

    test(`${path}: has a language, a title and one main heading`, async () => {
      const { text } = await signedIn(path);
      assert.match(text, /^<!doctype html>\n<html lang="en">/);
      assert.match(text, /<title>[A-Z][^<]+ – Stoa<\/title>/);
      assert.match(text, /<meta name="viewport" content="width=device-width, initial-scale=1">/);
      const visible = text.replace(/<section[^>]* hidden>.*?<\/section>/gs, "");
      assert.equal(visible.match(/<h1/g)?.length, 1, "one h1 is visible at first");
    });

    test(`${path}: each field has a label, and each referenced id exists once`, async () => {
      mustBeLabelled((await signedIn(path)).text);
    });

    test(`${path}: tab order follows the text, and one button submits each form`, async () => {
      const { text } = await signedIn(path);
      assert.doesNotMatch(text, /tabindex="[1-9]/);
      for (const [form] of text.matchAll(/<form.*?<\/form>/gs)) {
        assert.match(form, /^<form id="[\w-]+" method="post" novalidate/);
        assert.doesNotMatch(form, /<form[^>]* action=/);
        assert.equal(form.match(/<button(?![^>]*type="button")/g)?.length, 1, form);
        assert.match(form, /<div class="summary" role="alert" tabindex="-1" hidden><\/div>/);
        assert.match(form, /<p class="progress small" role="status"><\/p>/);
        assert.ok(form.lastIndexOf("<input") < form.indexOf("<button"), "the button comes after the fields");
      }
    });

    test(`${path}: no form can be submitted before its script has loaded`, async () => {
      const { text } = await signedIn(path);
      for (const [button] of text.matchAll(/<button(?![^>]*type="button")[^>]*>/g))
        assert.match(button, / disabled>/);
    });

    test(`${path}: loads files of this origin only, all of them immutable`, async () => {
      const { text } = await signedIn(path);
      const files = [...text.matchAll(/<(?:script|link)[^>]+(?:src|href)="([^"]+)"/g)].map(
        ([, file]) => file!,
      );
      assert.ok(files.length >= 2);
      for (const file of files) {
        const reply = await nobody.get(file);
        assert.equal(reply.status, 200, file);
        assert.match(reply.headers.get("cache-control")!, /immutable/);
      }
    });

    test(`${path}: shows nothing from its URL`, async () => {
      const token = "c2VjcmV0LXRva2VuLXRoYXQtbm9ib2R5LW1heS1zZWU";
      const join = path.includes("?") ? "&" : "?";
      const { text } = await signedIn(
        `${path}${join}token=${token}&challenge=${token}&email=${token}&problem=${token}&after=${token}`,
      );
      assert.ok(!text.includes(token));
    });
  }
});

suite("a page of an account", () => {
  for (const path of forSignedIn) {
    test(`${path}, no session: redirects to sign-in, and back here after it`, async () => {
      const reply = await nobody.get(path);
      assert.equal(reply.status, 302);
      const target = new URL(reply.headers.get("location")!, market.origin);
      assert.equal(target.pathname, "/auth/sign-in");
      const form = await nobody.get(target.pathname + target.search);
      assert.ok(form.text.includes(`data-return-to="${path}"`));
    });

    test(`${path}, an ended session: redirects to sign-in`, async () => {
      const { userId } = await market.createUser();
      const headers = { cookie: `__Host-session=${(await market.createSession(userId)).key}` };
      assert.equal((await nobody.get(path, headers)).status, 200);
      await market.query("update sessions set ended_at = $1 where user_id = $2", [market.clock.now, userId]);
      assert.equal((await nobody.get(path, headers)).status, 302);
    });
  }

  test("shows the account, as escaped text", async () => {
    const { text } = await signedIn("/auth/signed-in");
    assert.ok(text.includes("Ada &lt;Lovelace&gt; &amp; &quot;Co&quot;"));
    assert.match(visibleText(text), /Not you\? Sign out/);
  });

  test("an API key, or a session token in a header: not accepted", async () => {
    const { key } = await market.createUser();
    for (const headers of [{ authorization: `Bearer ${key}` }, { cookie: `__Host-session=${key}` }])
      assert.equal((await nobody.get("/auth/signed-in", headers)).status, 302);
  });
});

suite("the sign-in page", () => {
  test("asks for the address first, and for a password on demand", async () => {
    assert.deepEqual(fieldsIn((await nobody.get("/auth/sign-in")).text), ["email"]);
    const { text } = await nobody.get("/auth/sign-in?with=password");
    assert.deepEqual(fieldsIn(text), ["email", "password"]);
  });

  test("without email delivery: offers the password only", async (t) => {
    const silent = await openMarket({ config: { mail: "off" } });
    t.after(() => silent.close());
    const { text } = await silent.as(null).get("/auth/sign-in");
    assert.deepEqual(fieldsIn(text), ["email", "password"]);
    assert.doesNotMatch(text, /mail me|register/i);
  });

  test("offers only configured providers, and passes returnTo on", async (t) => {
    assert.doesNotMatch((await nobody.get("/auth/sign-in")).text, /GitHub|Google|\/api\/auth\//);
    const social = { clientId: "client", clientSecret: "hush-hush", issuer: "https://id.example" };
    const open = await openMarket({ config: { github: social, google: social } });
    t.after(() => open.close());
    const { text } = await open.as(null).get("/auth/sign-in?returnTo=/docs%3Fa%3D1%26b");
    assert.ok(text.includes('href="/api/auth/github?returnTo=%2Fdocs%3Fa%3D1%26b"'));
    assert.ok(text.includes('href="/api/auth/google?returnTo=%2Fdocs%3Fa%3D1%26b"'));
    assert.ok(!text.includes("hush-hush"));
  });

  test("passes returnTo on to each other way to sign in", async () => {
    for (const path of [
      "/auth/sign-in",
      "/auth/sign-in?with=password",
      "/auth/register",
      "/auth/check-mail",
    ]) {
      const { text } = await nobody.get(`${path}${path.includes("?") ? "&" : "?"}returnTo=%2Fdocs`);
      const others = [...text.matchAll(/href="(\/auth\/(?:sign-in|register)[^"]*)"/g)].map(
        ([, href]) => href!,
      );
      assert.ok(others.length > 0, path);
      for (const href of others) assert.match(href, /returnTo=%2Fdocs$/, `${path} → ${href}`);
    }
  });

  for (const evil of [
    "https://evil.example",
    "//evil.example",
    "/\\evil.example",
    "/.//evil.example",
    "/\t/evil.example",
    "javascript:alert(1)",
    "",
  ]) {
    test(`returnTo ${JSON.stringify(evil)}: ignored`, async () => {
      for (const path of [
        "/auth/sign-in",
        "/auth/register",
        "/auth/two-factor",
        "/auth/signed-in",
        "/auth/check-mail",
      ]) {
        const { text } = await signedIn(`${path}?returnTo=${encodeURIComponent(evil)}`);
        assert.doesNotMatch(text, /evil|javascript:/, path);
      }
    });
  }

  test("an error code of a provider: one sentence, also for an unknown code", async () => {
    const messageOf = async (problem: string) =>
      /<p class="notice \w+" role="\w+">([^<]+)<\/p>/.exec(
        (await nobody.get(`/auth/sign-in?problem=${encodeURIComponent(problem)}`)).text,
      )?.[1];
    assert.equal(await messageOf("SIGNED_OUT"), "You are signed out.");
    assert.match((await messageOf("ACCESS_DENIED"))!, /you are not signed in/);
    for (const unknown of ["whatever", "__proto__", "toString", '"><script>alert(1)</script>'])
      assert.equal(await messageOf(unknown), "Signing in did not work. Please try again.");
    assert.equal(
      await messageOf("").then((text) => text ?? null),
      "Signing in did not work. Please try again.",
    );
  });

  test("with a session: offers to continue or to sign in again, without a redirect", async () => {
    const { status, text } = await signedIn("/auth/sign-in?returnTo=%2Fdocs");
    assert.equal(status, 200);
    assert.match(text, /You are signed in as <strong>Ada[^<]+<\/strong>/);
    assert.ok(text.includes('<a href="/docs">Continue</a>'));
  });
});

suite("the inbox of the test environment", () => {
  test("linked after an email was sent, only where emails are stored for display", async (t) => {
    assert.match((await nobody.get("/auth/check-mail")).text, /href="\/dev\/mail"/);
    const real = await openMarket({ config: { mail: "off" } });
    t.after(() => real.close());
    assert.doesNotMatch((await real.as(null).get("/auth/check-mail")).text, /dev\/mail/);
  });
});

suite("a visitor", () => {
  const guestOf = (reply: Reply) =>
    reply.headers.getSetCookie().find((line) => line.startsWith("__Host-guest="));

  test("gets a cookie with the first page, which opens the public lists only", async () => {
    const line = guestOf(await nobody.get("/auth/sign-in"))!;
    assert.match(line, /; Path=\/; HttpOnly; Secure; SameSite=Lax$/);
    assert.doesNotMatch(line, /Domain/i);
    const guest = { cookie: line.split(";")[0]!, "sec-fetch-site": "same-origin" };
    for (const path of ["/v1/products", "/v1/categories"])
      assert.equal((await nobody.get(path, guest)).status, 200, path);
    for (const path of ["/v1/purchases", "/v1/ai/keys", "/v1/events"])
      assert.equal((await nobody.get(path, guest)).status, 403, path);
  });

  test("gets the cookie with an error page too", async () => {
    assert.ok(guestOf(await nobody.get("/auth/nothing", { accept: "text/html" })));
  });

  test("a valid cookie stays; a foreign one is replaced", async () => {
    const cookie = guestOf(await nobody.get("/auth/sign-in"))!.split(";")[0]!;
    assert.equal(guestOf(await nobody.get("/auth/sign-in", { cookie })), undefined);
    for (const forged of [
      `${cookie}x`,
      "__Host-guest=",
      "__Host-guest=00000000-0000-7000-8000-000000000000.x",
    ])
      assert.ok(guestOf(await nobody.get("/auth/sign-in", { cookie: forged })), forged);
  });

  test("with a session: gets no visitor cookie", async () => {
    assert.equal(guestOf(await signedIn("/auth/sign-in")), undefined);
  });

  test("with an expired session cookie, which hides the visitor's: it is cleared", async () => {
    for (const dead of ["", "nonsense", "a.b.c"]) {
      const reply = await nobody.get("/auth/sign-in", { cookie: `__Host-session=${dead}` });
      assert.match(reply.headers.getSetCookie().join("\n"), /^__Host-session=; Max-Age=0; Path=\//m);
      assert.ok(guestOf(reply));
    }
  });
});

suite("an error below /auth", () => {
  const asBrowser = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };

  test("a browser: gets a page with a link and a request id", async () => {
    for (const path of ["/auth/nothing", "/authx", "/auth/sign-in/x", "/oauth/interaction/x/y"]) {
      const reply = await nobody.get(path, asBrowser);
      assert.equal(reply.status, 404, path);
      assert.match(reply.headers.get("content-type")!, /^text\/html/);
      assert.match(reply.text, /<h1>This page does not exist<\/h1>/);
      assert.ok(reply.text.includes(reply.headers.get("x-request-id")!));
      mustHaveNothingInline(reply.text);
      mustBeLabelled(reply.text);
    }
  });

  test("a program, or a browser at the API: gets JSON", async () => {
    for (const [path, headers] of [
      ["/auth/nothing", { accept: "application/json" }],
      ["/auth/nothing", {}],
      ["/v1/nothing", asBrowser],
      ["/api/auth/nothing", asBrowser],
    ] as const) {
      const reply = await nobody.get(path, headers);
      assert.match(reply.headers.get("content-type")!, /^application\/json/, path);
    }
  });

  test("500: contains no internal detail", async (t) => {
    const broken = await openMarket();
    t.after(() => broken.close());
    const { userId } = await broken.createUser();
    const headers = { ...asBrowser, cookie: `__Host-session=${(await broken.createSession(userId)).key}` };
    await broken.query("alter table sessions rename column via to gone");
    await broken.query("alter table sessions rename column second_factor to lost");
    const reply = await broken.as(null).get("/auth/signed-in", headers);
    assert.equal(reply.status, 500);
    assert.match(visibleText(reply.text), /Something went wrong on our side/);
    assert.doesNotMatch(reply.text, /second_factor|column|select/i);
  });
});

test("the ids of a page: unique, also with every part shown", async () => {
  for (const path of [...forAnybody, ...forSignedIn]) {
    const ids = idsIn((await signedIn(path)).text);
    assert.equal(new Set(ids).size, ids.length, `${path}: ${ids}`);
  }
});
