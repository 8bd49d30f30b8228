import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { inflateSync } from "node:zlib";
import { Faces } from "./fonts.ts";
import { runsOf } from "./pdf.ts";
import { type Receipt, receiptPdf, receiptPolicy, renderReceiptHtml } from "./receipt.ts";

const paid: Receipt = {
  number: "R-3F7K2-2026-00042",
  issuedAt: new Date("2026-08-01T23:30:00.000Z"),
  status: "completed",
  buyer: { name: "Łukasz Żółć", email: "lukasz@example.com" },
  seller: { name: "Prompt Atelier" },
  lines: [{ title: "Talk about your salary in €", detail: "Version 1.2.0", amountMinor: 1999n }],
  subtotalMinor: 1999n,
  discountMinor: 0n,
  discountReason: null,
  taxMinor: 0n,
  totalMinor: 1999n,
  refundedMinor: 0n,
  refunds: [],
  taxRate: null,
  currency: "USD",
  paymentMethod: { brand: "visa", last4: "4242" },
  service: { name: "Stoa", origin: "https://stoa.example.com" },
};

test("a receipt: shows buyer, seller, product, date and payment method", () => {
  const page = renderReceiptHtml(paid);
  for (const words of [
    paid.number,
    "1 August 2026",
    "Łukasz Żółć",
    "lukasz@example.com",
    "Prompt Atelier",
    "Talk about your salary in €",
    "Version 1.2.0",
    "19.99 USD",
    "Visa ending in 4242",
    "Paid",
    "https://stoa.example.com",
  ]) {
    assert.ok(page.includes(words), words);
  }
});

test("a receipt without discount, tax and refund: has no rows for them", () => {
  assert.doesNotMatch(renderReceiptHtml(paid), /Discount|Tax|refund/i);
});

test("discount, tax and refund: one row each", () => {
  const page = renderReceiptHtml({
    ...paid,
    status: "partially_refunded",
    discountMinor: 1000n,
    taxMinor: 190n,
    totalMinor: 1189n,
    refundedMinor: 500n,
  });
  assert.match(page, /<dt>Discount<\/dt><dd>−10\.00 USD/);
  assert.match(page, /<dt>Tax<\/dt><dd>1\.90 USD/);
  assert.match(page, /<dt>Total<\/dt><dd>11\.89 USD/);
  assert.match(page, /<dt>Refunded<\/dt><dd>−5\.00 USD/);
  assert.match(page, /<dt>Paid after refund<\/dt><dd>6\.89 USD/);
  assert.match(page, /Partially refunded/);
});

test("discount and tax: show their code and rate", () => {
  const page = renderReceiptHtml({
    ...paid,
    discountMinor: 1000n,
    discountReason: "SPRING",
    taxMinor: 190n,
    taxRate: { percent: 19, inclusive: false, country: "DE" },
    totalMinor: 1189n,
  });
  assert.match(page, /<dt>Discount \(SPRING\)<\/dt><dd>−10\.00 USD/);
  assert.match(page, /<dt>Tax \(DE, 19 %\)<\/dt><dd>1\.90 USD.*<dt>Total<\/dt><dd>11\.89 USD/s);
});

test("included tax: below the total", () => {
  const taxRate = { percent: 5.5, inclusive: true, country: "FR" };
  const page = renderReceiptHtml({ ...paid, taxMinor: 104n, taxRate });
  assert.match(page, /<dt>Total<\/dt><dd>19\.99 USD.*<dt>Tax included \(FR, 5\.5 %\)<\/dt><dd>1\.04 USD/s);
});

test("several refunds and a lost dispute: one dated row for each refund, one row for the rest", () => {
  const page = renderReceiptHtml({
    ...paid,
    status: "refunded",
    refundedMinor: 1999n,
    refunds: [
      { at: new Date("2026-08-03T00:00:00.000Z"), amountMinor: 500n },
      { at: new Date("2026-08-04T23:59:59.999Z"), amountMinor: 1n },
    ],
  });
  assert.match(page, /<dt>Refunded on 3 August 2026<\/dt><dd>−5\.00 USD/);
  assert.match(page, /<dt>Refunded on 4 August 2026<\/dt><dd>−0\.01 USD/);
  assert.match(page, /<dt>Refunded<\/dt><dd>−14\.98 USD/);
  assert.match(page, /<dt>Paid after refund<\/dt><dd>0\.00 USD/);
});

test("a PDF with many refunds: continues on the next page", async () => {
  const refunds = Array.from({ length: 60 }, () => ({ at: paid.issuedAt, amountMinor: 1n }));
  const pdf = await receiptPdf({ ...paid, refundedMinor: 60n, refunds });
  assert.equal(readPdf(pdf).match(/Refunded on 1 August 2026/g)?.length, 60);
});

test("a free copy: has a receipt with status Free", () => {
  const page = renderReceiptHtml({ ...paid, discountMinor: 1999n, totalMinor: 0n, paymentMethod: null });
  assert.match(page, /Nothing to pay/);
  assert.match(page, /<dt>Status<\/dt><dd>Free</);
  assert.match(page, /<dt>Total<\/dt><dd>0\.00 USD/);
});

test("user texts with markup: escaped", () => {
  const attack = `"><script>alert('1')</script>&amp;`;
  const page = renderReceiptHtml({
    ...paid,
    number: attack,
    buyer: { name: attack, email: attack },
    seller: { name: attack },
    lines: [{ title: attack, detail: attack, amountMinor: 1999n }],
    paymentMethod: { brand: attack, last4: attack },
    service: { name: attack, origin: attack },
  });
  assert.doesNotMatch(page, /<script|'1'|&amp;(?!amp;)/);
  assert.match(page, /&lt;script&gt;/);
});

test("the Content-Security-Policy: allows only the page's own style", () => {
  const style = /<style>(.*)<\/style>/s.exec(renderReceiptHtml(paid))?.[1] ?? "";
  const hash = createHash("sha256").update(style).digest("base64");
  assert.match(receiptPolicy, /^default-src 'none'; /);
  assert.ok(receiptPolicy.includes(`style-src 'sha256-${hash}'`));
  assert.doesNotMatch(renderReceiptHtml(paid), / style=|<script|<link|<img/);
});

test("the PDF: prints Łukasz Żółć and the euro sign", async () => {
  const text = readPdf(await receiptPdf(paid));
  for (const words of ["Łukasz Żółć", "Talk about your salary in €", "19.99 USD", "Visa ending in 4242"]) {
    assert.ok(text.includes(words), `${words} in ${text}`);
  }
  assert.doesNotMatch(text, /□/);
});

for (const [language, name] of Object.entries({
  "simplified Chinese": "张伟国际",
  "traditional Chinese": "李小龍",
  Japanese: "田中さくら カナ",
  Korean: "김철수",
  Greek: "Ελένη Παπαδοπούλου",
  Russian: "Наталья Щёголева",
  Vietnamese: "Nguyễn Thị Phượng",
}))
  test(`a ${language} name: readable and copyable in the PDF`, async () => {
    const text = readPdf(await receiptPdf({ ...paid, buyer: { ...paid.buyer, name: `${name} (Łukasz)` } }));
    assert.ok(text.includes(`${name} (Łukasz)`), text);
    assert.doesNotMatch(text, /stands for a letter/);
  });

test("missing glyphs: a stand-in for each, and a footnote", async () => {
  const text = readPdf(await receiptPdf({ ...paid, buyer: { ...paid.buyer, name: "ነገሥታት 👨‍👩‍👧 Łukasz" } }));
  assert.match(text, /\*{5} \* Łukasz/);
  assert.match(text, /\* stands for a letter/);
});

test("a grapheme of several code points: one stand-in", () => {
  const printed = (text: string) => {
    const { runs, hasStandIns } = runsOf(text, new Faces());
    return [runs.map((run) => run.text).join(""), hasStandIns];
  };
  assert.deepEqual(printed("a👩🏽‍🚀b"), ["a*b", true]);
  assert.deepEqual(printed("Zoe\u0308"), ["Zoë", false]);
  assert.deepEqual(printed("two\nlines\there"), ["two lines here", false]);
});

test("the PDF: text can be copied, including glyphs that are parts of others", async () => {
  const text = readPdf(await receiptPdf({ ...paid, seller: { name: "i:;!? a.b.c" } }));
  for (const words of ["i:;!? a.b.c", "https://stoa.example.com", "lukasz@example.com"])
    assert.ok(text.includes(words), text);
});

test("a text with characters of all fonts: opens at most 24 faces", () => {
  const manySlices = String.fromCodePoint(...Array.from({ length: 120 }, (_, at) => 0x4e00 + 173 * at));
  const { runs, hasStandIns } = runsOf(manySlices, new Faces());
  assert.ok(new Set(runs.map(({ face }) => face.name)).size <= 24);
  assert.ok(hasStandIns);
});

test("text in one font: one run; blanks start no new run", () => {
  const facesOf = (text: string) =>
    runsOf(text, new Faces()).runs.map(({ face, text: letters }) => [face.name, letters]);
  assert.equal(facesOf("Receipt of 19.99 USD").length, 1);
  assert.deepEqual(
    facesOf("ab ш").map(([, letters]) => letters),
    ["ab ", "ш"],
  );
});

test("the same receipt: same PDF bytes", async () => {
  assert.ok((await receiptPdf(paid)).equals(await receiptPdf(paid)));
});

test("a receipt with many lines: continues on the next page", async () => {
  const lines = Array.from({ length: 40 }, (_, at) => ({
    title: `Line ${at} of forty`,
    detail: "Version 1.0.0",
    amountMinor: 100n,
  }));
  const pdf = await receiptPdf({ ...paid, lines });
  assert.equal(pdf.toString("latin1").match(/\/Type \/Page\n/g)?.length, 4);
  assert.ok(readPdf(pdf).includes("Line 39 of forty"));
});

/** The text that a reader copies: maps glyph numbers through each font's ToUnicode table. */
function readPdf(pdf: Buffer): string {
  const objects = new Map(
    [...pdf.toString("latin1").matchAll(/(\d+) 0 obj\n(.*?)\nendobj/gs)].map(([, id, body]) => [id!, body!]),
  );
  const unpack = (body: string) => {
    const [, packed = ""] = /stream\n(.*)\nendstream/s.exec(body) ?? [];
    return inflateSync(Buffer.from(packed, "latin1")).toString("latin1");
  };
  const letters = new Map<string, string[]>();
  for (const [, font, id] of [...objects.values()].join("\n").matchAll(/\/(F\d+) (\d+) 0 R/g)) {
    const [, table] = /\/ToUnicode (\d+)/.exec(objects.get(id!)!)!;
    letters.set(font!, glyphTable(unpack(objects.get(table!)!)));
  }
  const pages = [...objects.values()].filter((body) => /\/Contents/.test(body));
  return pages
    .map((page) => pageText(unpack(objects.get(/\/Contents (\d+)/.exec(page)![1]!)!), letters))
    .join("\n");
}

/** pdfkit writes the table as ranges of arrays, in the order of its glyph numbers. */
function glyphTable(cmap: string): string[] {
  const entries = [...cmap.matchAll(/\[(.*?)\]/gs)].flatMap(([, range]) => range!.match(/<[^>]*>/g) ?? []);
  return entries.map((entry) => Buffer.from(entry.replace(/[<> ]/g, ""), "hex").swap16().toString("utf16le"));
}

/** Glyphs with the same y position form a line, in any font. */
function pageText(content: string, letters: Map<string, string[]>): string {
  let font: string[] = [];
  let currentY: string | undefined;
  let text = "";
  const parts = /1 0 0 1 [\d.-]+ ([\d.-]+) Tm|\/(F\d+) [\d.]+ Tf|\[(.*?)\] TJ/g;
  for (const [, y, name, glyphs] of content.matchAll(parts)) {
    if (name) font = letters.get(name) ?? [];
    if (y !== undefined && y !== currentY) text += "\n";
    currentY = y ?? currentY;
    for (const glyph of glyphs?.match(/(?<=<[^>]*)[0-9a-f]{4}/g) ?? [])
      text += font[Number.parseInt(glyph, 16)];
  }
  return text;
}
