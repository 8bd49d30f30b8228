import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { createDraft, createProduct } from "../../../test/factories.ts";
import { runs, sampleOf } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { askedDuring } from "../../../test/statements.ts";
import { updateWordFrequencies } from "./search-maintenance.ts";
import { parseSearch } from "./search-terms.ts";

let market: Market;
let author: Client;
let reader: Client;
before(async () => {
  market = await openMarket();
  author = await market.createUser({ name: "Author" });
  reader = await market.createUser({ name: "Reader" });
  for (const [title, description, tags] of shop) await createProduct(author, { title, description, tags });
});
after(() => market.close());

const shop: [title: string, description: string, tags: string[]][] = [
  ["Haiku about anything", "Three lines of poetry.", ["japan"]],
  ["Poetry slam", "Loud verses.", ["stage"]],
  ["Love letter", "Somebody's haiku may be inside.", ["poetry"]],
  ["Przewodnik po Łodzi", "Zwiedzaj miasto Łódź w jeden dzień.", ["podróże"]],
  ["Crème brûlée", "Une recette détaillée.", ["cuisine française"]],
  ["Größenwahn", "Straßennamen erfinden.", ["deutsch"]],
  ["Помощник писателя", "Проверяет рукописи.", ["русский"]],
  ["Ελληνική ποίηση", "Στίχοι για τη θάλασσα.", ["ελληνικά"]],
  ["俳句 生成", "トピックから 俳句 を作ります。", ["日本語"]],
  ["مساعد الكتابة", "يكتب رسائل جميلة.", ["عربي"]],
  ["C++ & SQL review", "Finds O'Reilly-class bugs in state-of-the-art code.", ["node.js"]],
  ["Summarise a URL", "Reads https://example.com/page and mails me@example.com.", []],
];

async function found(words: string): Promise<string[]> {
  const { status, body, text } = await reader.get(
    `/v1/products?limit=100&search=${encodeURIComponent(words)}`,
  );
  assert.equal(status, 200, text);
  assert.equal(body.meta.total, body.data.length);
  return body.data.map(({ title }: { title: string }) => title);
}

async function assertFinds(title: string, ...searches: string[]): Promise<void> {
  for (const words of searches) assert.ok((await found(words)).includes(title), `"${words}" finds ${title}`);
}

test("a word: found in title, tags and description, in that order of weight", async () => {
  assert.deepEqual(await found("poetry"), ["Poetry slam", "Love letter", "Haiku about anything"]);
});

test("a search, some products have every word: finds no others", async () => {
  assert.deepEqual(await found("haiku poetry love"), ["Love letter"]);
});

test("a search, no product has every word: products with most words come first, then those with any", async () => {
  const titles = ["Marketing email", "Copy of an email", "Marketing", "Something else"];
  for (const title of titles) await createProduct(author, { title, tags: ["fallback"], description: "x" });
  const [both, other, one] = await found("marketing email copy");
  assert.deepEqual([[both, other].toSorted(), one], [["Copy of an email", "Marketing email"], "Marketing"]);
  assert.deepEqual((await found("marketing motorcycle")).toSorted(), ["Marketing", "Marketing email"]);
  const many = await found("marketing email motorcycle bicycle tricycle unicycle aeroplane");
  assert.deepEqual(many, ["Marketing email", ...many.slice(1)]);
  assert.deepEqual(many.slice(1).toSorted(), ["Copy of an email", "Marketing"]);
  assert.deepEqual(await found("motorcycle bicycle"), []);
});

test("a search, no product has every word: pages, orders, facets and totals agree with the list", async () => {
  const list = async (query: string) =>
    (await reader.get(`/v1/products?search=marketing%20email%20copy&${query}`)).body;
  const whole = await list("limit=100");
  const ids = (body: typeof whole) => body.data.map(({ id }: { id: string }) => id);
  const pages = await Promise.all([1, 2, 3].map((page) => list(`limit=1&page=${page}`)));
  assert.deepEqual(pages.flatMap(ids), ids(whole));
  assert.deepEqual(ids(await list("sort=title")).toSorted(), ids(whole).toSorted());
  const facets = (await reader.get("/v1/products/facets?search=marketing%20email%20copy")).body.data;
  assert.deepEqual(facets.type, [{ value: "PROMPT", count: whole.meta.total }]);
  assert.deepEqual(facets.tag, [{ value: "fallback", count: whole.meta.total }]);
});

test("a search, a facet's filter leaves out every product with all words: is empty, as the facet counts", async () => {
  const query = "search=poetry%20slam&tag=japan";
  const { data, meta } = (await reader.get(`/v1/products?${query}`)).body;
  assert.deepEqual([data, meta.total, meta.correctedSearch], [[], 0, undefined]);
  const facets = (await reader.get(`/v1/products/facets?${query}`)).body.data;
  assert.deepEqual(facets.tag, [{ value: "stage", count: 1 }]);
});

test("a search, a seller's name: finds their products, and after a change only by the new name", async () => {
  const seller = await market.createUser({ name: "Linh Phạm" });
  const title = "Pho at home";
  await createProduct(seller, { title, description: "A line of broth.", tags: ["linhx"] });
  await createProduct(author, { title: "Lineage", description: "line", tags: [] });
  for (const words of ["Linh Phạm", "linh pham", "pho linh"]) assert.deepEqual(await found(words), [title]);
  const session = await market.createSession(seller.userId);
  assert.equal((await session.patch("/v1/account", { name: "Thuỳ Dương" })).status, 200);
  assert.deepEqual(await found("thuy duong"), [title]);
  assert.deepEqual(await found("phạm"), []);
  assert.deepEqual(await found("linh"), [title], "by its tag");
});

test("a search, a word is a seller's or a tag's name: the word is not corrected", async () => {
  const seller = await market.createUser({ name: "Anythinh" });
  await createProduct(seller, { title: "Soup", description: "x", tags: ["verset"] });
  for (const [words, corrected] of [
    ["anythinh poetry", undefined],
    ["verset poetry", undefined],
    ["verset poetri", "verset poetry"],
    ["anythinh&lang=tr", undefined],
  ] as const) {
    const { meta } = (await reader.get(`/v1/products?search=${words}`)).body;
    assert.equal(meta.correctedSearch, corrected, words);
  }
});

test("the beginning of a word: matches, in any case", async () => {
  await assertFinds("Haiku about anything", "hai", "HAIKU", "anyth hAi");
  assert.deepEqual(await found("iku"), []);
});

test("accents: optional", async () => {
  await assertFinds("Przewodnik po Łodzi", "Łódź", "lodz", "ŁÓDŹ", "Łodzi", "podroze", "dzien");
  await assertFinds("Crème brûlée", "creme brulee", "CRÈME", "detaillee", "francaise");
  await assertFinds("Größenwahn", "grossenwahn", "größenwahn", "GRÖSSEN", "strassennamen");
});

test("other scripts: found in any case", async () => {
  await assertFinds("Помощник писателя", "помощник", "ПОМОЩ", "рукописи", "Русский");
  await assertFinds("Ελληνική ποίηση", "ελληνική", "ΠΟΊΗΣΗ", "θάλασσα");
  await assertFinds("俳句 生成", "俳句", "生", "日本");
  await assertFinds("مساعد الكتابة", "مساعد", "رسائل");
});

test("technical words: found as written", async () => {
  await assertFinds("C++ & SQL review", "c++", "sql", "o'reilly", "state-of-the-art", "node.js");
  await assertFinds("Summarise a URL", "example.com", "me@example.com", "https://example.com/page");
});

test("quotes and operators: plain text", async () => {
  const all = (await reader.get("/v1/products")).body.meta.total;
  for (const words of [
    "'); drop table products; --",
    "haiku' or '1'='1",
    "haiku & !poetry | (love",
    "poetry:*A <-> slam",
    '"love letter"',
    "\\' \\\\ E'\\x41'",
    "$1 $$ %s {1}",
    "!!! ((( &&& :* <->",
  ]) {
    await found(words);
  }
  assert.deepEqual(await found("!!!"), []);
  assert.equal((await reader.get("/v1/products")).body.meta.total, all);
});

test("random text: the search never fails", async () => {
  const anyText = fc.oneof(
    fc.string({ unit: "grapheme", maxLength: 60 }),
    fc.string({
      unit: fc.constantFrom("'", '"', "\\", ":", "*", "&", "|", "!", "(", ")", "<", "-", ">", "/", ".", "a"),
      maxLength: 60,
    }),
  );
  await fc.assert(
    fc.asyncProperty(
      anyText.filter((text) => !text.includes("\0") && text.length <= 200),
      async (words) => void (await found(words)),
    ),
    { numRuns: runs(150) },
  );
});

test("any title: found by its own first word", async () => {
  const word = fc.stringMatching(/^[a-zA-Zäöüéèłñçßабвгд]{2,20}$/);
  await fc.assert(
    fc.asyncProperty(word, async (title) => {
      const id = await createProduct(author, { title });
      const { body } = await reader.get(
        `/v1/products?limit=100&search=${encodeURIComponent(title)}&sort=createdAt`,
      );
      assert.ok(
        body.data.some((card: { id: string }) => card.id === id),
        title,
      );
      await author.delete(`/v1/products/${id}`);
    }),
    { numRuns: runs(40) },
  );
});

test("an empty search: no filter", async () => {
  const all = (await reader.get("/v1/products")).body.meta.total;
  assert.equal((await reader.get("/v1/products?search=")).body.meta.total, all);
  assert.equal((await reader.get("/v1/products?search=%20%20")).body.meta.total, all);
});

test("a search: at most 200 characters, no NUL", async () => {
  assertError(await reader.get(`/v1/products?search=${"x".repeat(201)}`), 400, "INVALID_REQUEST", "search");
  assertError(await reader.get("/v1/products?search=a%00b"), 400, "INVALID_REQUEST", "search");
});

test("a search: combines with filters and orders, and finds drafts only among own products", async () => {
  await createDraft(author, { title: "Haiku in a drawer", price: 1 });
  const titles = async (who: Client, query: string) => {
    const { body } = await who.get(`/v1/products?search=haiku&${query}`);
    return body.data.map(({ title }: { title: string }) => title);
  };
  assert.deepEqual(await titles(reader, "sort=title&order=asc"), ["Haiku about anything", "Love letter"]);
  assert.deepEqual(await titles(reader, "tag=poetry"), ["Love letter"]);
  assert.deepEqual(await titles(author, "author=me&status=draft"), ["Haiku in a drawer"]);
  assert.deepEqual(await titles(reader, "author=me"), []);
});

test("a search with a filter: follows each change of the product", async () => {
  const fields = { title: "Quagga prints", lang: "en", price: 3, compatibility: ["openai"] };
  const id = await createProduct(author, fields);
  const filters = ["lang=en", "type=prompt", "provider=openai", "minPrice=3&maxPrice=3", "currency=USD"];
  const changed = ["lang=de", "type=workflow", "provider=groq", "minPrice=4&maxPrice=4", "currency=EUR"];
  const assertFinds = async (found: string[], missed: string[]) => {
    market.clock.forward(5_000);
    const list = async (filter: string) =>
      (await reader.get(`/v1/products?search=quagga&${filter}&sort=price&limit=1`)).body.data.length;
    assert.deepEqual(
      await Promise.all(found.map(list)),
      found.map(() => 1),
    );
    assert.deepEqual(
      await Promise.all(missed.map(list)),
      missed.map(() => 0),
    );
  };
  await assertFinds(filters, changed);
  const patch = { lang: "de", price: 4, compatibility: ["groq"] };
  assert.equal((await author.patch(`/v1/products/${id}`, patch)).status, 200);
  await assertFinds([changed[0]!, changed[2]!, changed[3]!], [filters[0]!, filters[2]!, filters[3]!]);
});

test("equally good matches: the more bought one first", async () => {
  const first = await createProduct(author, { title: "Zebra", tags: [], description: "x" });
  const second = await createProduct(author, { title: "Zebra", tags: [], description: "x" });
  const order = async () =>
    (await reader.get("/v1/products?search=zebra")).body.data.map(({ id }: { id: string }) => id);
  assert.deepEqual(await order(), [second, first], "without sales, the newer one first");
  await reader.post("/v1/purchases", { productId: first });
  market.clock.forward(5_000);
  assert.deepEqual(await order(), [first, second]);
});

test("a misspelled word: corrected, and the answer reports it", async () => {
  const search = async (words: string) =>
    (await reader.get(`/v1/products?search=${encodeURIComponent(words)}`)).body;
  for (const [typed, corrected] of [
    ["poetri", "poetry"],
    ["anythng", "anything"],
    ["somebdoy", "somebody"],
    ["haiku anythnig", "haiku anything"],
    ["Größenwahm", "grossenwahn"],
  ] as const) {
    const { data, meta } = await search(typed);
    assert.equal(meta.correctedSearch, corrected, typed);
    assert.ok(data.length > 0, typed);
  }
  assert.equal((await search("haiku")).meta.correctedSearch, undefined);
  const nothing = await search("qqqqqqq");
  assert.deepEqual([nothing.data, nothing.meta.total, nothing.meta.correctedSearch], [[], 0, undefined]);
});

test("a word that no product has: looked up in the words, not in the products", async () => {
  const readsOf = async (words: string) => {
    const asked = await askedDuring(() => reader.get(`/v1/products?search=${words}`));
    return asked.filter(({ text }) => text.includes("search_documents")).length;
  };
  assert.equal(await readsOf("poetrj"), 2, "whether its correction matches, and the page");
  assert.equal(await readsOf("qqqqqqj"), 0);
});

/** Inclusive: letters with and without accents, scripts without spaces, and letters outside the first plane. */
const alphabets = [
  "az",
  "àž",
  "αω",
  "ая",
  "את",
  "قي",
  "अह",
  "กฮ",
  "ກຮ",
  "ကအ",
  "ぁん",
  "一伿",
  "𠀀𠃿",
  "𐐀𐑏",
  "𝐀𝖟",
  "가걿",
];
const anyWord = fc
  .constantFrom(...alphabets)
  .map((alphabet) => Array.from(alphabet, (letter) => letter.codePointAt(0)!) as [number, number])
  .chain(([min, max]) =>
    fc.string({
      unit: fc
        .integer({ min, max })
        .map((code) => String.fromCodePoint(code))
        .filter((letter) => /\p{L}/u.test(letter)),
      minLength: 1,
      maxLength: 70,
    }),
  );

test("any words of drafts and published products: known, so that each is found, also after their frequencies were counted", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyWord, { minLength: 1, maxLength: 3 }),
      fc.boolean(),
      async (words, isDraft) => {
        const input = { title: "Words", description: `of ${words.join(" ")}`, tags: [] };
        const id = await (isDraft ? createDraft : createProduct)(author, input);
        await updateWordFrequencies(market.service.ctx);
        for (const word of words) {
          const query = `author=me&sort=createdAt&search=${encodeURIComponent(word)}`;
          const { body, text } = await author.get(`/v1/products?${query}`);
          assert.ok(
            body.data.some((product: { id: string }) => product.id === id),
            `${word}: ${text}`,
          );
        }
      },
    ),
    // Two letters that are four units of UTF-16, and a pair of units that the longest word cuts.
    { numRuns: runs(30), examples: [[["𠀀𠀁", `a${"𐐀".repeat(40)}`], true]] },
  );
});

test("a word: matches its stem, in the requested language", async () => {
  await createProduct(author, { title: "Writes replies", lang: "en", description: "x", tags: [] });
  await createProduct(author, { title: "Kitap önerileri", lang: "tr", description: "x", tags: [] });
  await assertFinds("Writes replies", "writing", "writing reply", "the writing of a reply");
  const turkish = await reader.get(`/v1/products?lang=tr&search=${encodeURIComponent("kitapları")}`);
  assert.deepEqual(
    turkish.body.data.map(({ title }: { title: string }) => title),
    ["Kitap önerileri"],
  );
  assert.deepEqual((await reader.get("/v1/products?lang=tr&search=writing")).body.data, []);
});

test("scripts without spaces: found by any part of a word", async () => {
  await createProduct(author, { title: "提示词工程师", lang: "zh", description: "写作助手", tags: [] });
  await createProduct(author, { title: "โปรแกรมช่วยเขียนบทความ", lang: "th", description: "x", tags: [] });
  await createProduct(author, { title: "한국어 번역기", lang: "ko", description: "x", tags: [] });
  await assertFinds("提示词工程师", "提示词", "工程", "词", "写作 提示");
  await assertFinds("俳句 生成", "俳句", "トピック", "ピック", "句");
  await assertFinds("โปรแกรมช่วยเขียนบทความ", "โปรแกรม", "บทความ");
  await assertFinds("한국어 번역기", "한국어", "번역");
  assert.deepEqual(await found("示提"), []);
});

test("letters of any Unicode form: found as the letters that they show", async () => {
  await createProduct(author, {
    title: "𝐁𝐨𝐥𝐝 𝕺𝖑𝖉𝖊 ＷＩＤＥ",
    description: "Midjourney™ №7",
    tags: ["Ⓒircled"],
  });
  await assertFinds(
    "𝐁𝐨𝐥𝐝 𝕺𝖑𝖉𝖊 ＷＩＤＥ",
    "bold",
    "olde",
    "wide",
    "𝓫𝓸𝓵𝓭",
    "BOLD",
    "midjourneytm",
    "no7",
    "circled",
  );
});

test("a text without word boundaries: stored, and found by its beginning", async () => {
  const long = "supercalifragilistic".repeat(400);
  for (const character of sampleOf(["ก", "ກ", "ក", "က", "文", "か", "é", "ا"], 1)) {
    const id = await createProduct(author, {
      title: `Long ${character}`,
      description: `${character}${long}`,
    });
    await assertFinds(`Long ${character}`, `long ${character}`);
    await author.delete(`/v1/products/${id}`);
  }
});

test("a long word of letters that are surrogate pairs: stored, and found by its beginning", async () => {
  const long = `a${"𐌰".repeat(80)}`;
  await createProduct(author, { title: `Gothic ${long}`, description: long, tags: [long.slice(0, 31)] });
  await assertFinds(`Gothic ${long}`, `gothic ${long}`, long.slice(0, 11));
});

test("a language parameter: only a known language, any other is refused", async () => {
  for (const lang of ["constructor", "__proto__", "toString-x", "en'--", "xx", ""]) {
    const { status, text } = await reader.get(`/v1/products?search=haiku&lang=${encodeURIComponent(lang)}`);
    assert.equal(status, 200, text);
  }
});

test("parameters beside a search without matches: validated too", async () => {
  for (const [query, field] of [
    ["minPrice=5&maxPrice=4", "minPrice"],
    ["maxPrice=4.999", "maxPrice"],
    ["currency=ZZZ", "currency"],
    ["status=draft", "status"],
  ] as const) {
    const reply = await reader.get(`/v1/products?search=!!!&${query}`);
    assertError(reply, 400, "INVALID_REQUEST", field);
  }
});

test("words of drafts: not revealed, and no effect on the search", async () => {
  const rival = await market.createUser();
  await createProduct(author, { title: "Vermicelli", description: "x", tags: [] });
  const words = Array.from({ length: 60 }, (_, at) => `vermi${String(at).padStart(2, "0")}x`);
  await createDraft(rival, { title: "Vermicella", description: words.join(" "), tags: [] });
  await assertFinds("Vermicelli", "vermi");
  const { data, meta } = (await reader.get("/v1/products?search=vermicellu")).body;
  assert.deepEqual([data.length, meta.correctedSearch], [1, "vermicelli"]);
  const own = (await rival.get("/v1/products?author=me&search=vermi59")).body;
  assert.equal(own.meta.total, 1);
});

test("many word beginnings: each matches fewer words; whole words always match", async () => {
  const letters = Array.from("abcdefghijkl");
  const beginning = (letter: string) => `qx${letter}`;
  const words = (letter: string) => Array.from({ length: 60 }, (_, at) => `${beginning(letter)}${at}`);
  for (const letter of letters)
    await createProduct(author, { title: letter, description: words(letter).join(" ") });
  const { db } = market.service.ctx;
  const sizes = async (...beginnings: string[]) =>
    (await parseSearch(db, beginnings.join(" "), "en")).map(({ lexemes }) => lexemes.length - 1);
  assert.deepEqual(await sizes("qxa"), [50]);
  assert.deepEqual(await sizes("qxa", "qxb"), [50, 50]);
  assert.deepEqual(await sizes("qxa", "qxb", "qxc", "qxd"), [25, 25, 25, 25]);
  assert.deepEqual(await sizes(...letters.map(beginning)), Array(12).fill(8));
  await assertFinds("a", `qxa59 ${Array.from({ length: 11 }, (_, at) => `qxa${at}`).join(" ")}`);
});
