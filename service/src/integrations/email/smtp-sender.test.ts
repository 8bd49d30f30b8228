import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { suite, test } from "node:test";
import fc from "fast-check";
import { readConfig } from "../../core/config/config.ts";
import { parseSmtpUrl } from "../../core/config/smtp-url.ts";
import { isEmailAddress, parseMailbox } from "../../core/mailbox.ts";
import { createDevEmailSender } from "./dev-sender.ts";

const awkward = fc.constantFrom(..."<>@,;:()[]\\\"'\0\r\n\t \u2028\uff20\u3002\u200bab.-+_");
const never = new AbortController().signal;

suite("isEmailAddress", () => {
  test("valid: one mailbox in plain ASCII", () => {
    for (const address of ["ada@example.com", "a.d+a_1'x@mail.example.co.uk", "stoa@localhost"])
      assert.ok(isEmailAddress(address), address);
  });

  test("invalid: lists, and forms that mail programs read differently", () => {
    const tricks = [
      "ada@example.com,eve@example.net",
      "ada@example.com;eve@example.net",
      "ada@example.com eve@example.net",
      "ada@example.com\r\nBcc: eve@example.net",
      "ada@example.com\n",
      '"ada@example.com"@example.net',
      '"eve@example.net x"@example.com',
      "<ada@example.com>",
      "Ada <ada@example.com>",
      "ada\uff20example.com",
      "ada@example\u3002com",
      "\u0430da@example.com",
      "ada@exam\u200bple.com",
      "ada(comment)@example.com",
      "ada@[127.0.0.1]",
      "ada@@example.com",
      "@example.com",
      "ada@",
      "ada@.com",
      "ada@example..com",
      "",
      `${"a".repeat(65)}@example.com`,
      `ada@${"example.".repeat(40)}com`,
    ];
    for (const trick of tricks) assert.ok(!isEmailAddress(trick), JSON.stringify(trick));
  });

  test("invalid: more than one @, line breaks and list separators", () => {
    fc.assert(
      fc.property(fc.string({ unit: awkward, maxLength: 20 }), (text) => {
        const address = `a@b.c${text}`;
        if (isEmailAddress(address)) assert.match(address, /^[\x21-\x7e]+$/);
        if (isEmailAddress(address)) assert.doesNotMatch(text, /[@,;:<>()"\\[\]]/);
      }),
    );
  });
});

test("MAIL_FROM: an address with or without a name", () => {
  assert.deepEqual(parseMailbox("stoa@example.com"), { name: "", address: "stoa@example.com" });
  assert.deepEqual(parseMailbox("The Stoa <stoa@example.com>"), {
    name: "The Stoa",
    address: "stoa@example.com",
  });
  assert.deepEqual(parseMailbox('"Stoa, Inc." <stoa@example.com>'), {
    name: "Stoa, Inc.",
    address: "stoa@example.com",
  });
  for (const wrong of ["Stoa", "Stoa <>", "a <b@c.d>, e <f@g.h>", "Stoa\r\nBcc: <e@f.g>", "x, <a@b.c>"])
    assert.equal(parseMailbox(wrong), null, wrong);
});

suite("SMTP_URL", () => {
  test("smtps:// uses TLS from the start, smtp:// requires STARTTLS", () => {
    const secure = parseSmtpUrl("smtps://me:p%40ss@mail.example");
    assert.deepEqual([secure.secure, secure.port, secure.requireTLS], [true, 465, false]);
    assert.deepEqual(secure.auth, { user: "me", pass: "p@ss" });
    const upgraded = parseSmtpUrl("smtp://mail.example");
    assert.deepEqual([upgraded.secure, upgraded.port, upgraded.requireTLS], [false, 587, true]);
    assert.deepEqual([upgraded.auth, upgraded.tls.rejectUnauthorized], [null, true]);
  });

  test("without TLS: only on this machine, or if the URL allows it", () => {
    assert.equal(parseSmtpUrl("smtp://mailpit:1025?requireTLS=false").requireTLS, false);
    for (const host of ["localhost", "127.0.0.1", "[::1]"])
      assert.equal(parseSmtpUrl(`smtp://${host}:25`).requireTLS, false, host);
    assert.equal(parseSmtpUrl("smtp://localhost:25?requireTLS=true").requireTLS, true);
    for (const host of ["127.example", "localhost.example", "1270.0.0.1.example"])
      assert.equal(parseSmtpUrl(`smtp://${host}`).requireTLS, true, host);
  });

  test("other URLs: are refused with a reason", () => {
    assert.throws(() => parseSmtpUrl("https://mail.example"), /is not smtp:/);
    assert.throws(() => parseSmtpUrl("smtp://"), /is not smtp:/);
    assert.throws(() => parseSmtpUrl("smtp://mail.example?requireTls=false"), /not requireTls/);
    assert.throws(() => parseSmtpUrl("smtp://mail.example?requireTLS=no"), /true or false/);
  });
});

suite("settings of email", () => {
  const production = {
    STOA_ENVIRONMENT: "production",
    STOA_MASTER_KEYS: `1:${randomBytes(32).toString("base64")}`,
    STOA_SESSION_KEYS: `1:${randomBytes(32).toString("base64")}`,
    SMTP_URL: "smtps://mail.example",
    STOA_MAIL_FROM: "Stoa <stoa@example.com>",
  };

  test("SMTP_URL: sends through this server", () => {
    const { mail, smtpUrl, mailFrom } = readConfig(production);
    assert.deepEqual(
      { mail, smtpUrl, mailFrom },
      {
        mail: "smtp",
        smtpUrl: "smtps://mail.example",
        mailFrom: "Stoa <stoa@example.com>",
      },
    );
  });

  for (const [name, changes, expected] of [
    ["production without a mail server", { SMTP_URL: "" }, /SMTP_URL must be set in production/],
    ["production without a sender address", { STOA_MAIL_FROM: "" }, /STOA_MAIL_FROM must be set/],
    ["STOA_MAIL=dev in production", { STOA_MAIL: "dev" }, /STOA_MAIL=dev shows everybody's mail/],
    ["two sender addresses", { STOA_MAIL_FROM: "a@b.c, d@e.f" }, /STOA_MAIL_FROM is no address/],
    ["invalid SMTP_URL", { SMTP_URL: "mail.example:25" }, /SMTP_URL is not smtp:/],
    ["STOA_MAIL=smtp without SMTP_URL", { STOA_MAIL: "smtp", SMTP_URL: "" }, /STOA_MAIL=smtp needs SMTP_URL/],
  ] as const) {
    test(`${name}: refused`, () => assert.throws(() => readConfig({ ...production, ...changes }), expected));
  }

  test("production: may disable email explicitly", () => {
    assert.equal(readConfig({ ...production, SMTP_URL: "", STOA_MAIL: "off" }).mail, "off");
  });
});

test("test environment: prints one line with the link for each email", async () => {
  const lines: string[] = [];
  const mail = createDevEmailSender((line) => lines.push(line));
  const message = { id: "1", recipient: "ada@example.com", subject: "Sign in", text: "", html: "" };
  await mail.send({ ...message, link: "https://stoa.example/auth/verify#token=x" }, never);
  await mail.send({ ...message, subject: "News\u001b[2J\nMail to eve" }, never);
  assert.deepEqual(lines, [
    "Mail to ada@example.com: Sign in → https://stoa.example/auth/verify#token=x",
    "Mail to ada@example.com: News [2J Mail to eve",
  ]);
});
