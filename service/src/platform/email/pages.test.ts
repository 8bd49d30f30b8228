import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, suite, test } from "node:test";
import type { FastifyRequest } from "fastify";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { newUuid } from "../../core/ids.ts";
import { isLocalRequest } from "../http/local-request.ts";
import { queueEmail } from "./email-queue.ts";
import { type EmailInput, renderEmail } from "./render-email.ts";

let market: Market;
let nobody: Client;
before(async () => {
  market = await openMarket();
  nobody = market.as(null);
});
after(() => market.close());

const LINK = "https://stoa.example/auth/verify#token=abc";
const JSON_WANTED = { accept: "application/json" };

async function send(to: string, marketOptions: Partial<EmailInput> = {}) {
  const { ctx } = market.service;
  const message = renderEmail({
    subject: "Sign in to Stoa",
    paragraphs: ["Hello."],
    action: { label: "Sign in", url: LINK },
    ...marketOptions,
  });
  await ctx.db.transaction().execute((tx) => queueEmail(ctx, tx, to, message));
  return message;
}

suite("/dev/mail", () => {
  test("JSON: every email, newest first", async () => {
    const first = await send("ada@example.com");
    market.clock.forward(1);
    await send("grace@example.com", { subject: "News" });
    const { status, body, headers } = await nobody.get("/dev/mail", JSON_WANTED);
    assert.equal(status, 200);
    assert.equal(headers.get("content-type"), "application/json; charset=utf-8");
    assert.equal(headers.get("cache-control"), "no-store");
    assert.equal(body.success, true);
    assert.deepEqual(
      body.data.map((message: { to: string; subject: string }) => [message.to, message.subject]),
      [
        ["grace@example.com", "News"],
        ["ada@example.com", "Sign in to Stoa"],
      ],
    );
    const { id, createdAt, ...rest } = body.data[1];
    const { subject, text, html } = first;
    assert.deepEqual(rest, { to: "ada@example.com", subject, text, html });
    assert.equal(createdAt, new Date(market.clock.now.getTime() - 1).toISOString());
    const one = await nobody.get(`/dev/mail/${id}`, JSON_WANTED);
    assert.deepEqual(one.body, { success: true, data: body.data[1] });
  });

  test("HTML: a list and single emails, without inline scripts or styles", async () => {
    await send("eve@example.com", { subject: '<b>Bold</b> & "quoted"' });
    const list = await nobody.get("/dev/mail", { accept: "text/html" });
    assert.match(list.headers.get("content-security-policy")!, /script-src 'self';/);
    assert.match(list.text, /&lt;b&gt;Bold&lt;\/b&gt; &amp; &quot;quoted&quot;/);
    const path = /href="(\/dev\/mail\/[0-9a-f-]{36})"/.exec(list.text)![1]!;
    const page = await nobody.get(path);
    assert.match(page.text, /eve@example\.com/);
    assert.match(page.text, new RegExp(`<iframe [^>]*sandbox="[^"]*" src="${path}/html"`));
    assert.match(page.headers.get("content-security-policy")!, /frame-src 'self'/);
    for (const { text } of [list, page]) assert.doesNotMatch(text, /<script(?! type="module" src=)|style=/);
  });

  test("an email's HTML: in a frame that can only open links", async () => {
    await send("ada@example.com");
    const { body } = await nobody.get("/dev/mail", JSON_WANTED);
    const { headers, text } = await nobody.get(`/dev/mail/${body.data[0].id}/html`);
    const policy = headers.get("content-security-policy")!;
    assert.match(policy, /default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'; sandbox /);
    assert.doesNotMatch(policy, /allow-(scripts|same-origin|top-navigation|forms)/);
    assert.equal(headers.get("x-frame-options"), "SAMEORIGIN");
    assert.match(text, /<base target="_blank">/);
    assert.ok(text.includes(`href="${LINK}"`));
  });

  test("an unknown or malformed id: 404", async () => {
    for (const id of [newUuid(market.clock.now), "nonsense", "%00", `${newUuid(market.clock.now)}x`]) {
      for (const path of [`/dev/mail/${id}`, `/dev/mail/${id}/html`])
        assertError(await nobody.get(path, JSON_WANTED), 404, "NOT_FOUND");
    }
  });

  test("production, or a configured mail server: 404", async () => {
    for (const config of [
      { environment: "production" as const, mail: "smtp" as const, smtpUrl: "smtp://127.0.0.1:9" },
      { environment: "production" as const, mail: "dev" as const },
      { mail: "smtp" as const, smtpUrl: "smtp://127.0.0.1:9" },
      { mail: "off" as const },
    ]) {
      const other = await openMarket({ config });
      const reply = await other.as(null).get("/dev/mail");
      await other.close();
      assertError(reply, 404, "NOT_FOUND");
    }
  });
});

suite("/dev/mail opens every account, so it is local only", () => {
  /** `fetch` cannot set Host. */
  const statusFor = (headers: Record<string, string>) =>
    new Promise<number>((resolve, reject) => {
      const asking = request(`${market.origin}/dev/mail`, { headers }, (reply) => {
        reply.resume();
        resolve(reply.statusCode!);
      });
      asking.on("error", reject).end();
    });

  test("localhost and other loopback names: shown", async () => {
    const { host, port } = new URL(market.origin);
    for (const name of [host, `localhost:${port}`, `[::1]:${port}`, "127.0.0.1", "LOCALHOST"])
      assert.equal(await statusFor({ host: name }), 200, name);
  });

  test("another host name for our address (DNS rebinding): refused", async () => {
    for (const host of ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "a b", "["])
      assert.equal(await statusFor({ host }), 404, host);
  });

  test("through a proxy: refused", async () => {
    for (const name of ["x-forwarded-for", "x-forwarded-host", "forwarded", "via", "x-real-ip"])
      assert.equal(await statusFor({ [name]: "127.0.0.1" }), 404, name);
  });

  const asked = (socket: object, host: string, origin: string, httpVersion = "1.1") =>
    isLocalRequest({ socket, headers: { host }, raw: { httpVersion } } as FastifyRequest, origin);

  test("through a proxy without forwarding headers: refused", () => {
    const own = { remoteAddress: "127.0.0.1", localAddress: "127.0.0.1" };
    assert.ok(asked(own, "127.0.0.1:4000", "http://127.0.0.1:4000"));
    assert.ok(!asked(own, "127.0.0.1:4000", "http://127.0.0.1:4000", "1.0"));
    // With another address than a loopback one, such a proxy is likely.
    for (const origin of ["https://stoa.example", "http://stoa.lan", "http://192.168.1.5:4000"]) {
      assert.ok(!asked(own, "127.0.0.1:4000", origin));
      assert.ok(!asked(own, new URL(origin).host, origin));
    }
  });

  test("from another machine: refused", () => {
    const from = (remoteAddress: string | undefined, localAddress: string) =>
      asked({ remoteAddress, localAddress }, "localhost:4000", "http://localhost:4000");
    assert.ok(from("192.168.1.5", "192.168.1.5"));
    assert.ok(from("::ffff:127.0.0.1", "::ffff:127.0.0.1"));
    for (const remote of ["192.168.1.6", "::ffff:10.0.0.1", "2001:db8::1", "12.7.0.1", undefined])
      assert.ok(!from(remote, "192.168.1.5"), remote);
  });
});
