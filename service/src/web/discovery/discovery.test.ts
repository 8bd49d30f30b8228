import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import sharp from "sharp";
import { createDraft, createProduct } from "../../../test/factories.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";

let market: Market;
let seller: Client;
let poet: string;
let draft: string;
before(async () => {
  market = await openMarket();
  seller = await market.createUser({ role: "seller", name: "Ada & <Sons>" });
  poet = await createProduct(seller, {
    title: "Poet",
    description: "Three lines & <b>more</b> about anything.",
  });
  market.clock.forward(1_000);
  await createProduct(seller, { title: "Critic", lang: "de" });
  draft = await createDraft(seller, { title: "Draft" });
});
after(() => market.close());

const get = async (path: string) => {
  const { status, text, headers } = await market.as(null).get(path);
  return { status, text, type: headers.get("content-type"), caching: headers.get("cache-control") };
};

test("GET /robots.txt: names the sitemap, and keeps crawlers off pages of members", async () => {
  const { status, text, type } = await get("/robots.txt");
  assert.equal(status, 200);
  assert.equal(type, "text/plain; charset=utf-8");
  assert.ok(text.includes(`Sitemap: ${market.origin}/sitemap.xml\n`), text);
  assert.ok(text.includes("Disallow: /account\n"), text);
});

test("GET /sitemap.xml: leads to every product on sale, and to no other", async () => {
  const index = await get("/sitemap.xml");
  assert.equal(index.type, "application/xml; charset=utf-8");
  assert.equal(index.caching, "public, max-age=3600");
  const parts = [...index.text.matchAll(/<loc>([^<]+)<\/loc>/g)].map(([, url]) => String(url));
  assert.equal(parts.length, 1);
  const part = await get(new URL(String(parts[0])).pathname);
  assert.equal(part.status, 200);
  assert.ok(part.text.includes(`<loc>${market.origin}/p/poet-${poet}</loc><lastmod>`), part.text);
  assert.ok(part.text.includes("/p/critic-"), part.text);
  assert.ok(!part.text.includes(draft), part.text);
  for (const path of ["/sitemaps/prod_x.xml", `/sitemaps/${draft}.xml`, "/sitemaps/%00.xml"])
    assert.equal((await get(path)).status, 404, path);
});

test("the picture of a link preview: a PNG of the generated cover for a product without images", async () => {
  const page = await get(`/p/poet-${poet}`);
  const [, url] = /<meta property="og:image" content="([^"]+)">/.exec(page.text) ?? [];
  assert.equal(url, `${market.origin}/covers/prompt/${poet}.png`);
  const response = await fetch(String(url));
  assert.equal(response.headers.get("content-type"), "image/png");
  assert.equal(response.headers.get("cache-control"), "public, max-age=31536000, immutable");
  const { width, height, format } = await sharp(Buffer.from(await response.arrayBuffer())).metadata();
  assert.deepEqual({ width, height, format }, { width: 1200, height: 630, format: "png" });
  for (const path of [`/covers/prompt/${poet}.svg`, `/covers/tool/${poet}.png`, "/covers/prompt/prod_x.png"])
    assert.equal((await get(path)).status, 404, path);
});

test("GET /feed.xml: the newest products of a search or a seller, as Atom", async () => {
  const { text, type, status } = await get("/feed.xml");
  assert.equal(status, 200);
  assert.equal(type, "application/atom+xml; charset=utf-8");
  assert.ok(text.indexOf("<title>Critic</title>") < text.indexOf("<title>Poet</title>"), text);
  assert.ok(text.includes("<name>Ada &amp; &lt;Sons&gt;</name>"), text);
  assert.ok(text.includes("Three lines &amp; &lt;b&gt;more"), text);
  const german = await get("/feed.xml?lang=de&nonsense=1");
  assert.deepEqual(german.text.match(/<entry>\n<title>[^<]+/g), ["<entry>\n<title>Critic"]);
  const { author } = (await seller.get(`/v1/products/${poet}`)).body.data;
  assert.equal((await get(`/feed.xml?author=${author.id}`)).text.match(/<entry>/g)?.length, 2);
  assert.equal((await get("/feed.xml?author=usr_x")).text.match(/<entry>/g), null);
});
