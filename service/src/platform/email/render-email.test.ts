import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { renderEmail } from "./render-email.ts";

const awkward = fc.constantFrom(..."<>&\"'/=\0\r\n\t\u000b\u0085\u2028\u202e ab@,;");
const url = `https://stoa.example/auth/verify#token=${"a-b_c".repeat(20)}`;
const signIn = {
  subject: "Sign in to Stoa",
  paragraphs: ["Hello Ada,", "Use this link to sign in. ".repeat(8)],
  action: { label: "Sign in", url },
  footnotes: ["The link works once, for ten minutes. If you did not ask for it, do nothing."],
};

test("the text: lines of 72 characters, the link on its own line", () => {
  const { text, link } = renderEmail(signIn);
  const lines = text.split("\n");
  assert.ok(lines.includes(url));
  assert.equal(link, url);
  assert.deepEqual(
    lines.filter((line) => line.length > 72),
    [url],
  );
  assert.ok(lines.every((line) => line === line.trimEnd()));
  const words = `${signIn.paragraphs.join(" ")}Sign in: ${url} — ${signIn.footnotes[0]}`;
  assert.equal(text.split(/\s+/).join(" ").trim(), words.split(/\s+/).join(" "));
});

test("the HTML: the same text, the link as button and as text", () => {
  const { html } = renderEmail(signIn);
  assert.match(html, /^<!doctype html>\n<html lang="en" dir="ltr">/);
  assert.equal(html.split(`href="${url}"`).length - 1, 2);
  assert.ok(html.includes(`>${url}</a>`));
  for (const words of ["Hello Ada,", "Use this link to sign in.", "The link works once"])
    assert.ok(html.includes(words));
});

test("the HTML: loads nothing and runs nothing", () => {
  assert.doesNotMatch(renderEmail(signIn).html, /<(script|img|link|iframe|table)|url\(|@import|\bon\w+=/i);
});

test("an email without an action: no button and no link", () => {
  const { html, link } = renderEmail({ subject: "News", paragraphs: ["Something changed."] });
  assert.doesNotMatch(html, /<a |<hr/);
  assert.equal(link, undefined);
});

test("names of users: escaped, no line break, no paragraph of their own", () => {
  fc.assert(
    fc.property(fc.string({ unit: awkward, maxLength: 40 }), (name) => {
      const { subject, text, html } = renderEmail({
        subject: `News for ${name}`,
        paragraphs: [`${name}, hello.`],
      });
      const plain = renderEmail({ subject: "News for x", paragraphs: ["x, hello."] });
      assert.doesNotMatch(subject, /\p{Cc}/u);
      assert.doesNotMatch(text, /\n\n/);
      assert.equal(html.match(/</g)!.length, plain.html.match(/</g)!.length);
      assert.equal(html.match(/"/g)!.length, plain.html.match(/"/g)!.length);
    }),
  );
});
