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
    test(`${path} is a page that nobody keeps, frames or gives scripts to`, async () => {
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

    test(`${path} names its language, its title and one thing that it is about`, async () => {
      const { text } = await signedIn(path);
      assert.match(text, /^<!doctype html>\n<html lang="en">/);
      assert.match(text, /<title>[A-Z][^<]+ – Stoa<\/title>/);
      assert.match(text, /<meta name="viewport" content="width=device-width, initial-scale=1">/);
      const seen = text.replace(/<section[^>]* hidden>.*?<\/section>/gs, "");
      assert.equal(seen.match(/<h1/g)?.length, 1, "one h1 is to be seen at first");
    });

    test(`${path} ties a label to every field, and all that is referred to is there once`, async () => {
      mustBeLabelled((await signedIn(path)).text);
    });

    test(`${path} leaves the order of the keyboard as it is read, and sends each form by one button`, async () => {
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

    test(`${path} lets no form be sent before its script is there`, async () => {
      const { text } = await signedIn(path);
      for (const [button] of text.matchAll(/<button(?![^>]*type="button")[^>]*>/g))
        assert.match(button, / disabled>/);
    });

    test(`${path} asks for files of this origin alone, all of which are here for ever`, async () => {
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

    test(`${path} shows nothing of what its address carries`, async () => {
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
    test(`${path} asks a stranger to sign in, and is where that leads back to`, async () => {
      const reply = await nobody.get(path);
      assert.equal(reply.status, 302);
      const target = new URL(reply.headers.get("location")!, market.origin);
      assert.equal(target.pathname, "/auth/sign-in");
      const form = await nobody.get(target.pathname + target.search);
      assert.ok(form.text.includes(`data-return-to="${path}"`));
    });

    test(`${path} is shut to a session that was ended`, async () => {
      const { userId } = await market.createUser();
      const headers = { cookie: `__Host-session=${(await market.createSession(userId)).key}` };
      assert.equal((await nobody.get(path, headers)).status, 200);
      await market.query("update sessions set ended_at = $1 where user_id = $2", [market.clock.now, userId]);
      assert.equal((await nobody.get(path, headers)).status, 302);
    });
  }

  test("tells whose account it is, letter by letter", async () => {
    const { text } = await signedIn("/auth/signed-in");
    assert.ok(text.includes("Ada &lt;Lovelace&gt; &amp; &quot;Co&quot;"));
    assert.match(visibleText(text), /Not you\? Sign out/);
  });

  test("takes no key and no header for a person", async () => {
    const { key } = await market.createUser();
    for (const headers of [{ authorization: `Bearer ${key}` }, { cookie: `__Host-session=${key}` }])
      assert.equal((await nobody.get("/auth/signed-in", headers)).status, 302);
  });
});

suite("the sign-in page", () => {
  test("asks for the address first, and for a password only on demand", async () => {
    assert.deepEqual(fieldsIn((await nobody.get("/auth/sign-in")).text), ["email"]);
    const { text } = await nobody.get("/auth/sign-in?with=password");
    assert.deepEqual(fieldsIn(text), ["email", "password"]);
  });

  test("offers a password alone where no mail is sent", async (t) => {
    const silent = await openMarket({ config: { mail: "off" } });
    t.after(() => silent.close());
    const { text } = await silent.as(null).get("/auth/sign-in");
    assert.deepEqual(fieldsIn(text), ["email", "password"]);
    assert.doesNotMatch(text, /mail me|register/i);
  });

  test("offers other sites only where they are set up, and takes the way back along", async (t) => {
    assert.doesNotMatch((await nobody.get("/auth/sign-in")).text, /GitHub|Google|\/api\/auth\//);
    const social = { clientId: "client", clientSecret: "hush-hush", issuer: "https://id.example" };
    const open = await openMarket({ config: { github: social, google: social } });
    t.after(() => open.close());
    const { text } = await open.as(null).get("/auth/sign-in?returnTo=/docs%3Fa%3D1%26b");
    assert.ok(text.includes('href="/api/auth/github?returnTo=%2Fdocs%3Fa%3D1%26b"'));
    assert.ok(text.includes('href="/api/auth/google?returnTo=%2Fdocs%3Fa%3D1%26b"'));
    assert.ok(!text.includes("hush-hush"));
  });

  test("takes the way back along to each other way to sign in", async () => {
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
    test(`leads nobody to ${JSON.stringify(evil)}`, async () => {
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

  test("says what went wrong elsewhere in a sentence, also what it has none for", async () => {
    const said = async (problem: string) =>
      /<p class="notice \w+" role="\w+">([^<]+)<\/p>/.exec(
        (await nobody.get(`/auth/sign-in?problem=${encodeURIComponent(problem)}`)).text,
      )?.[1];
    assert.equal(await said("SIGNED_OUT"), "You are signed out.");
    assert.match((await said("ACCESS_DENIED"))!, /you are not signed in/);
    for (const unknown of ["whatever", "__proto__", "toString", '"><script>alert(1)</script>'])
      assert.equal(await said(unknown), "Signing in did not work. Please try again.");
    assert.equal(await said("").then((text) => text ?? null), "Signing in did not work. Please try again.");
  });

  test("lets somebody who is signed in go on or sign in anew, and sends them nowhere by itself", async () => {
    const { status, text } = await signedIn("/auth/sign-in?returnTo=%2Fdocs");
    assert.equal(status, 200);
    assert.match(text, /You are signed in as <strong>Ada[^<]+<\/strong>/);
    assert.ok(text.includes('<a href="/docs">Continue</a>'));
  });
});

suite("the mailbox of the test environment", () => {
  test("is named where an email was sent, and only where emails are kept for show", async (t) => {
    assert.match((await nobody.get("/auth/check-mail")).text, /href="\/dev\/mail"/);
    const real = await openMarket({ config: { mail: "off" } });
    t.after(() => real.close());
    assert.doesNotMatch((await real.as(null).get("/auth/check-mail")).text, /dev\/mail/);
  });
});

suite("a visitor", () => {
  const guestOf = (reply: Reply) =>
    reply.headers.getSetCookie().find((line) => line.startsWith("__Host-guest="));

  test("gets a cookie with the first page, which opens the shop's lists and nothing else", async () => {
    const line = guestOf(await nobody.get("/auth/sign-in"))!;
    assert.match(line, /; Path=\/; HttpOnly; Secure; SameSite=Lax$/);
    assert.doesNotMatch(line, /Domain/i);
    const guest = { cookie: line.split(";")[0]!, "sec-fetch-site": "same-origin" };
    for (const path of ["/v1/products", "/v1/categories"])
      assert.equal((await nobody.get(path, guest)).status, 200, path);
    for (const path of ["/v1/purchases", "/v1/ai/keys", "/v1/events"])
      assert.equal((await nobody.get(path, guest)).status, 403, path);
  });

  test("gets it with an error's page too", async () => {
    assert.ok(guestOf(await nobody.get("/auth/nothing", { accept: "text/html" })));
  });

  test("keeps the cookie that they have; one that is not ours is replaced", async () => {
    const given = guestOf(await nobody.get("/auth/sign-in"))!.split(";")[0]!;
    assert.equal(guestOf(await nobody.get("/auth/sign-in", { cookie: given })), undefined);
    for (const forged of [
      `${given}x`,
      "__Host-guest=",
      "__Host-guest=00000000-0000-7000-8000-000000000000.x",
    ])
      assert.ok(guestOf(await nobody.get("/auth/sign-in", { cookie: forged })), forged);
  });

  test("is nobody with a session", async () => {
    assert.equal(guestOf(await signedIn("/auth/sign-in")), undefined);
  });

  test("is whose session is over: its cookie, which hides the visitor's, is taken away", async () => {
    for (const dead of ["", "nonsense", "a.b.c"]) {
      const reply = await nobody.get("/auth/sign-in", { cookie: `__Host-session=${dead}` });
      assert.match(reply.headers.getSetCookie().join("\n"), /^__Host-session=; Max-Age=0; Path=\//m);
      assert.ok(guestOf(reply));
    }
  });
});

suite("an error below /auth", () => {
  const asBrowser = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };

  test("is a page for a browser, with a way on and a number to name", async () => {
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

  test("stays JSON for a program, and at the API for a browser too", async () => {
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

  test("tells nothing of what broke inside, in 500", async (t) => {
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

test("the ids of a page are its own, also with every part shown", async () => {
  for (const path of [...forAnybody, ...forSignedIn]) {
    const ids = idsIn((await signedIn(path)).text);
    assert.equal(new Set(ids).size, ids.length, `${path}: ${ids}`);
  }
});
