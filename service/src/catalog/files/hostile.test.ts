import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { crc32 } from "node:zlib";
import fc from "fast-check";
import sharp from "sharp";
import { anyCharacter } from "../../../test/any-character.ts";
import { createDraft } from "../../../test/factories.ts";
import { isFullSize, runs } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { picture, send, sendFile, sendImage, type UploadInput } from "../../../test/uploads.ts";
import { type Entry, zipOf } from "../../../test/zip.ts";
import { contentDisposition, toFileName } from "./file-name.ts";
import { checkFileType } from "./file-type-check.ts";

let market: Market;
let seller: Client;
let productId: string;
before(async () => {
  market = await openMarket();
  seller = await market.createUser();
  productId = await createDraft(seller);
});
after(() => market.close());

const latin = (text: string) => new Uint8Array(Buffer.from(text, "latin1"));
const joined = (...parts: (string | Uint8Array)[]) =>
  new Uint8Array(
    Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part, "latin1") : part))),
  );

/** Has no file, since a name identifies one. */
let emptyProductId: string | null = null;

async function offer(sent: UploadInput) {
  emptyProductId ??= await createDraft(seller);
  const reply = await sendFile(seller, emptyProductId, sent);
  if (reply.status === 201) {
    emptyProductId = null;
    return { type: reply.body.data.type as string, reason: "" };
  }
  return { type: "", reason: assertError(reply, 400, "INVALID_REQUEST", "file").reason as string };
}

const pdf = "%PDF-1.7\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n%%EOF\n";
const word: Entry[] = [
  { name: "[Content_Types].xml", data: "<Types/>" },
  { name: "word/document.xml", data: "<w/>" },
];

suite("accepted:", () => {
  const gif = "GIF89a\x01\0\x01\0\0\0\0;";
  const samples: [
    name: string,
    bytes: () => Promise<UploadInput["bytes"]> | UploadInput["bytes"],
    type: string,
  ][] = [
    ["a.txt", () => "Grüße, 俳句\n", "text/plain"],
    ["a.md", () => "<!-- a comment --><h1 align=center>Title</h1>", "text/markdown"],
    ["a.json", () => '{"a":1}', "application/json"],
    ["a.jsonl", () => "{}\n{}\n", "application/jsonl"],
    ["a.csv", () => "\ufeffa;b\r\n1;2\r\n", "text/csv"],
    ["a.tsv", () => "a\tb\n", "text/tab-separated-values"],
    ["a.YAML", () => "a: 1\n", "application/yaml"],
    ["a.pdf", () => pdf, "application/pdf"],
    ["a.zip", () => zipOf([{ name: "a/b.py", data: "print(1)" }]), "application/zip"],
    ["a.docx", () => zipOf(word), "application/vnd.openxmlformats-officedocument.wordprocessingml.document"],
    ["a.zip", () => zipOf(word), "application/zip"],
    ["a.gif", () => latin(gif), "image/gif"],
    ["a.png", () => picture(), "image/png"],
    ...(["jpeg", "webp", "avif"] as const).map(
      (format) =>
        [
          `a.${format}`,
          async () =>
            new Uint8Array(
              await sharp(await picture())
                .toFormat(format)
                .toBuffer(),
            ),
          `image/${format}`,
        ] as [string, () => Promise<Uint8Array<ArrayBuffer>>, string],
    ),
  ];
  for (const [name, bytes, type] of samples)
    test(`${name} as ${type}`, async () => {
      const found = await offer({ name, bytes: await bytes(), type });
      assert.deepEqual(found, { type, reason: "" });
    });

  test("a missing media type, or an equivalent one", async () => {
    for (const type of ["", "application/octet-stream", "text/plain", "application/vnd.ms-excel"])
      assert.equal((await offer({ name: "a.csv", bytes: "a,b\n", type })).type, "text/csv");
  });
});

suite("rejected:", () => {
  const EICAR = ["X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR", "-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"].join("");
  const cases: [what: string, name: string, bytes: UploadInput["bytes"], why: RegExp][] = [
    ["an empty file", "a.txt", "", /is empty/],
    ["a Windows program", "a.txt", joined("MZ\x90\0", randomBytes(200)), /a Windows program/],
    ["a Windows program of plain letters", "a.txt", "MZ is how it begins", /a Windows program/],
    ["a Linux program", "a.pdf", joined("\x7fELF\x02\x01", randomBytes(200)), /a Linux program/],
    ["a macOS program", "a.zip", joined("\xcf\xfa\xed\xfe", randomBytes(200)), /a macOS program/],
    ["a Java class", "a.txt", joined("\xca\xfe\xba\xbe", randomBytes(20)), /Java/],
    ["a script", "a.txt", "#!/bin/sh\nrm -rf /\n", /a script/],
    ["a script behind a byte order mark", "a.txt", "\ufeff#!/bin/sh\n", /a script/],
    ["a page", "a.txt", "<!DOCTYPE html><script>alert(1)</script>", /HTML/],
    ["a page after a comment", "a.md", " \n<!-- hello --> <HTML><body>", /HTML/],
    ["an SVG", "a.txt", '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>', /SVG/],
    ["an SVG as XML", "a.txt", '<?xml version="1.0"?><svg/>', /SVG/],
    ["the test virus", "a.txt", EICAR, /EICAR/],
    [
      "a PDF with a script behind much else, written in a roundabout way",
      "a.pdf",
      `%PDF-${"x".repeat(65_500)}/#4a#61#76#61#53#63#72#69#70#74`,
      /active content/,
    ],
    ["the test virus behind much text", "a.txt", `${"x".repeat(1_048_560)}${EICAR}`, /EICAR/],
    [
      "the test virus in an archive",
      "a.zip",
      zipOf([{ name: "a.com.txt", data: EICAR, method: 0 }]),
      /EICAR/,
    ],
    ["a RAR archive", "a.zip", latin("Rar!\x1a\x07\x01\0"), /RAR/],
    ["a gzip archive", "a.txt", latin("\x1f\x8b\x08\0"), /gzip/],
    ["an old Office document", "a.docx", latin("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), /macros/],
    ["rich text", "a.txt", "{\\rtf1\\object}", /rich text/],
    ["bytes that are nothing", "a.txt", new Uint8Array([1, 2, 3, 255, 254]), /neither text/],
    ["text with a NUL", "a.txt", "a\0b", /neither text/],
    ["text with an escape of a terminal's bell", "a.txt", "a\x07b", /neither text/],
    ["text in UTF-16", "a.txt", new Uint8Array(Buffer.from("\ufeffabc", "utf16le")), /neither text/],
    ["text that ends in half a character", "a.txt", new Uint8Array([0x61, 0xe2, 0x82]), /neither text/],
    [
      "a PDF that calls itself text",
      "a.txt",
      pdf,
      /application\/pdf by its bytes and text\/plain by its name: call it \.pdf/,
    ],
    ["text that calls itself a PDF", "a.pdf", "Hello", /text\/plain by its bytes/],
    [
      "an archive that calls itself a document",
      "a.docx",
      zipOf([{ name: "a.txt" }]),
      /application\/zip by its bytes/,
    ],
    ["a name that says nothing", "README", "Hello", /a name without an extension/],
    ["a name that says something else", "a.exe", "Hello", /\.exe by its name/],
    [
      "a PDF that runs a script",
      "a.pdf",
      pdf.replace("/Pages", "/OpenAction<</S/JavaScript/JS(app.alert(1))>>/Pages"),
      /active content/,
    ],
    [
      "a PDF that hides that",
      "a.pdf",
      pdf.replace("/Pages", "/AA<</S/J#61vaScri#70t>>/Pages"),
      /active content/,
    ],
    [
      "a PDF that starts a program",
      "a.pdf",
      pdf.replace("/Pages", "/A<</S/Launch/F(cmd.exe)>>/Pages"),
      /active content/,
    ],
    ["a PDF with a page inside", "a.pdf", `${pdf}<script>alert(1)</script>`, /two things/],
    ["a PDF with an archive at its end", "a.pdf", joined(pdf, zipOf([{ name: "a.txt" }])), /two things/],
    ["a GIF that is a page", "a.gif", latin("GIF89a/*<script>alert(1)</script>*/=1;"), /two things/],
    ["a GIF that is a PDF", "a.gif", joined("GIF89a\x01\0\x01\0\0\0\0", pdf), /two things/],
    [
      "a GIF that is an archive",
      "a.gif",
      joined("GIF89a\x01\0\x01\0\0\0\0;", zipOf([{ name: "a.class" }])),
      /two things/,
    ],
    [
      "text that is an archive",
      "a.txt",
      joined("Hello", zipOf([{ name: "a.txt", data: "x", method: 0 }])),
      /neither text/,
    ],
  ];
  for (const [what, name, bytes, why] of cases)
    test(what, async () => assert.match((await offer({ name, bytes })).reason, why));

  test("content that contradicts the media type or the name", async () => {
    assert.match(
      (await offer({ name: "a.md", bytes: "# Hi", type: "text/html" })).reason,
      /was sent as text\/html/,
    );
    assert.match(
      (await offer({ name: "a.png", bytes: await picture(), type: "image/jpeg" })).reason,
      /image\/jpeg/,
    );
  });

  test("a picture followed by an archive, as a file; as an image the archive is removed", async () => {
    const bytes = joined(await picture(), zipOf([{ name: "evil.class", data: "EVILMARK", method: 0 }]));
    assert.match((await offer({ name: "a.png", bytes })).reason, /two things/);
    const reply = await sendImage(seller, productId, { bytes });
    assert.equal(reply.status, 201, reply.text);
    for (const { url } of reply.body.data.sizes)
      assert.ok(!Buffer.from(await (await fetch(url)).arrayBuffer()).includes("EVILMARK"));
  });
});

/** Info-ZIP's extra field with another name for the entry, which some programs prefer. */
function alsoCalled(name: string, other: string): Buffer {
  const field = Buffer.alloc(9);
  field.writeUInt16LE(0x7075, 0);
  field.writeUInt16LE(5 + Buffer.byteLength(other), 2);
  field.writeUInt8(1, 4);
  field.writeUInt32LE(crc32(name), 5);
  return Buffer.concat([Buffer.from([0x99, 0x99, 2, 0, 1, 2]), field, Buffer.from(other)]);
}

test("an archive of many compressed entries: no warning about leaked listeners", async (t) => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => void warnings.push(warning);
  process.on("warning", onWarning);
  t.after(() => process.off("warning", onWarning));
  const entries = Array.from({ length: 20 }, (_, n) => ({ name: `${n}.txt`, data: "hello" }));
  assert.equal((await offer({ name: "a.zip", bytes: zipOf(entries) })).type, "application/zip");
  assert.deepEqual(warnings, []);
});

suite("rejected: an archive that", () => {
  const plain = { name: "a.txt", data: "hello" };
  const zip = zipOf([plain]);
  const cases: [what: string, bytes: Uint8Array<ArrayBuffer>, why: RegExp][] = [
    ["would unpack above its folder", zipOf([{ name: "../../../etc/passwd" }]), /outside of its folder/],
    ["would unpack above it from below", zipOf([{ name: "a/b/../../../c" }]), /outside of its folder/],
    ["would unpack to the root", zipOf([{ name: "/etc/passwd" }]), /absolute path/],
    ["would unpack to a drive", zipOf([{ name: "C:evil.txt" }]), /absolute path/],
    ["has backslashes", zipOf([{ name: "..\\evil.txt" }]), /backslash/],
    ["has a link", zipOf([{ name: "a", data: "/etc/passwd", mode: 0o120777 }]), /link to somewhere else/],
    ["has a program", zipOf([plain, { name: "bin/setup.EXE" }]), /program inside: bin\/setup.EXE/],
    ["has a program behind a dot", zipOf([plain, { name: "setup.exe." }]), /program inside/],
    ["has a program behind blanks", zipOf([plain, { name: "setup.exe . " }]), /program inside/],
    ["has a program as a stream of NTFS", zipOf([plain, { name: "setup.exe::$DATA" }]), /program inside/],
    ["is a Java program", zipOf([{ name: "META-INF/MANIFEST.MF" }, { name: "A.class" }]), /Java/],
    ["has macros", zipOf([...word, { name: "word/vbaProject.bin" }]), /macros/],
    ["has an archive inside", zipOf([{ name: "more.zip", data: zip }]), /nested archive/],
    ["is encrypted", zipOf([{ ...plain, encrypted: true }]), /encrypted/],
    ["is packed by another method", zipOf([{ ...plain, method: 9 }]), /method 9/],
    ["is said to unpack to 4 GB", zipOf([{ ...plain, size: 0xfffffffe }]), /more than 500 MiB/],
    ["is stored in another size than it has", zipOf([{ ...plain, method: 0, size: 3 }]), /contradict/],
    [
      "inflates past what its headers say",
      zipOf([{ ...plain, data: Buffer.alloc(20_000_000), size: 1_000 }]),
      /does not unpack/,
    ],
    // More than one read of the file: refused while the rest is unread.
    [
      "inflates past what its headers say, and does not shrink",
      zipOf([{ ...plain, data: randomBytes(3_000_000), size: 1_000 }]),
      /does not unpack/,
    ],
    ["inflates to less than its headers say", zipOf([{ ...plain, size: 100_000 }]), /does not unpack/],
    ["is a zip64", zipOf([{ ...plain, size: 0xffffffff }]), /zip64/],
    [
      "unpacks to a thousand times its size",
      zipOf([{ name: "0", data: Buffer.alloc(20 * 1024 * 1024) }]),
      /100 times/,
    ],
    ["has 2,001 entries", zipOf(Array.from({ length: 2_001 }, (_, n) => ({ name: `${n}` }))), /2001 entries/],
    ["is empty", zipOf([]), /empty/],
    ["has two entries of one name", zipOf([plain, { ...plain, name: "A.TXT" }]), /two entries/],
    ["has an entry under two names", zipOf([{ ...plain, localName: "b.txt" }]), /two names/],
    [
      "has an entry that some programs call otherwise",
      zipOf([{ ...plain, extra: alsoCalled("a.txt", "../a.exe") }]),
      /two names/,
    ],
    ["has an entry that is packed in two ways", zipOf([{ ...plain, localMethod: 0 }]), /contradicts/],
    ["has a name with a NUL", zipOf([{ name: "a\0.txt" }]), /no text/],
    ["is cut off", zip.subarray(0, zip.length - 5), /cut off/],
    ["has something after its end", joined(zip, "more"), /cut off|after its end/],
    ["has something before its first entry", joined("PK\x03\x04junk", zip), /before|broken|inside/],
    ["tells of more entries than it has", zipOf([plain], { count: 2 }), /broken list/],
    ["tells of fewer entries than it has", zipOf([plain, { name: "b" }], { count: 1 }), /broken list/],
  ];
  for (const [what, bytes, why] of cases)
    test(what, async () => assert.match((await offer({ name: "a.zip", bytes })).reason, why));

  test("accepted: an archive that repeats a name for one entry, or has only padding there", async () => {
    for (const extra of [alsoCalled("a.txt", "a.txt"), Buffer.alloc(3)]) {
      const { type } = await offer({ name: "a.zip", bytes: zipOf([{ ...plain, extra }]) });
      assert.equal(type, "application/zip");
    }
  });

  test("has overlapping entries", async () => {
    const overlapping = Buffer.from(
      zipOf([
        { name: "a", data: "x".repeat(500), method: 0 },
        { name: "b", data: "y", method: 0 },
      ]),
    );
    const second = overlapping.lastIndexOf("PK\x01\x02");
    overlapping.writeUInt32LE(0, second + 42);
    assert.match(
      (await offer({ name: "a.zip", bytes: new Uint8Array(overlapping) })).reason,
      /inside each other/,
    );
  });

  test("a corrupted archive: accepted or refused, never a fault", async () => {
    const good = zipOf([plain, { name: "b/c.txt", data: "x".repeat(300) }], { comment: "hello" });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(good.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 }),
        async (changes) => {
          const bytes = new Uint8Array(good);
          for (const [position, value] of changes) bytes[position] = value;
          const reply = await sendFile(seller, productId, { name: "a.zip", bytes });
          if (reply.status !== 201) assertError(reply, 400, "INVALID_REQUEST", "file");
        },
      ),
      { numRuns: isFullSize ? 150 : 10 },
    );
  });
});

test("a text that begins with many comments: checked in linear time", async () => {
  const start = process.threadCpuUsage();
  const { type } = await offer({ name: "a.md", bytes: `${"<!---->".repeat(30)}text` });
  const { user, system } = process.threadCpuUsage(start);
  assert.equal(type, "text/markdown");
  assert.ok(user + system < 500_000, `${(user + system) / 1_000} ms`);
  const { reason } = await offer({ name: "a.md", bytes: `${"<!-- a -- > -->\n".repeat(200)}<script>` });
  assert.match(reason, /HTML/);
});

test("a large file: checked in small steps, other requests are answered between them", async () => {
  const folder = await mkdtemp(join(tmpdir(), "stoa-judge-"));
  const path = join(folder, "a.pdf");
  const bytes = Buffer.from(`%PDF-1.7\n${"#41".repeat(1_400_000)}`);
  await writeFile(path, bytes);
  const longestTurn = async () => {
    let [longest, since] = [0, process.threadCpuUsage()];
    const count = () => {
      const { user, system } = process.threadCpuUsage(since);
      longest = Math.max(longest, user + system);
      since = process.threadCpuUsage();
      turning = setImmediate(count);
    };
    let turning = setImmediate(count);
    await checkFileType({ path, name: "a.pdf", declaredType: null, size: bytes.length, sha256: "" }, "a.pdf");
    clearImmediate(turning);
    return longest;
  };
  const turns: number[] = [];
  const isShort = (micros: number) => micros < 100_000;
  // One of several tries: a garbage collection delays one of them, a long step delays all.
  for (let times = 0; times < 3 && !turns.some(isShort); times++) turns.push(await longestTurn());
  assert.ok(turns.some(isShort), `${turns} µs`);
  await rm(folder, { recursive: true });
});

test("random multipart bodies: declared answers, never 500", async () => {
  const hasty = await openMarket({ requestDeadlines: { upload: { idleMs: 100, totalMs: 30_000 } } });
  const sender = await hasty.createUser();
  const target = await createDraft(sender);
  const piece = fc.constantFrom(
    ...["--x\r\n", "--x--\r\n", "--x", "\r\n", "\r\n\r\n", "\0", "Content-Type: text/plain\r\n", "abc", "é"],
    ...[
      'Content-Disposition: form-data; name="file"; filename="a.md"\r\n',
      'Content-Disposition: form-data; name="changelog"\r\n',
    ],
    ...[
      "Content-Disposition: form-data; name=\"file\"; filename*=UTF-8''a%0d.md\r\n",
      'Content-Disposition: x; name="\r\n',
      `X: ${"y".repeat(20_000)}\r\n`,
    ],
  );
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 12 }), async (pieces) => {
      const reply = await sender.request("POST", `/v1/products/${target}/files`, {
        body: pieces.join(""),
        headers: { "content-type": "multipart/form-data; boundary=x" },
      });
      assert.ok([201, 400].includes(reply.status), reply.text);
    }),
    {
      numRuns: isFullSize ? 200 : 10,
      examples: [
        // A part after the closing boundary: the parser starts it and never ends it.
        [["--x--\r\n", "--x\r\n", 'Content-Disposition: form-data; name="file"; filename="a.md"\r\n']],
        [
          [
            "--x\r\n",
            'Content-Disposition: form-data; name="file"; filename="a.md"\r\n',
            "\r\n",
            "abc",
            "\r\n",
            "--x--\r\n",
          ],
        ],
      ],
    },
  );
  assert.deepEqual(
    hasty.logs.filter((line) => line.includes("unexpected error")),
    [],
  );
  await hasty.close();
});

test("any file name: stored as one visible segment that fits into a header", () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.string({ unit: anyCharacter }), fc.string({ unit: "grapheme" })),
      (clientName) => {
        let name: string;
        try {
          name = toFileName(clientName.toWellFormed());
        } catch {
          return;
        }
        assert.ok(name.length > 0 && Array.from(name).length <= 120);
        assert.doesNotMatch(name, /[\\/\p{Cc}\u202a-\u202e\u2066-\u2069]|^\.|[. ]$/u);
        assert.equal(toFileName(name), name, "cleaning it again changes nothing");
        const header = contentDisposition(name);
        assert.match(header, /^attachment; filename="[\x20-\x7e]+"; filename\*=UTF-8''[\w.!#$&+^`|~%-]+$/);
        assert.equal(decodeURIComponent(header.split("UTF-8''")[1]!), name);
      },
    ),
    { numRuns: runs(100) },
  );
});

test("POST images, an unknown field: refused, named", async () => {
  const path = `/v1/products/${productId}/images`;
  const sent = { name: "a.png", bytes: await picture(), fields: { alt: "x".repeat(301) } };
  assertError(await send(seller, path, sent), 400, "INVALID_REQUEST", "alt");
});
