// Loads COUNT products with Vendure's own importer (initial data and a CSV file), then builds its search index.
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const require = createRequire(join(process.cwd(), "load.mjs"));
const core = require("@vendure/core");
const { populate } = require("@vendure/core/cli");
const { config } = require("./config.js");
const { productAt, CATEGORIES } = await import(process.env.PRODUCTS);

const count = Number(process.env.COUNT);
const quote = (text) => `"${String(text).replaceAll('"', '""')}"`;
const columns =
  "name,slug,description,assets,facets,optionGroups,optionValues,sku,price,taxCategory,stockOnHand,trackInventory,variantAssets,variantFacets";
const lineOf = (product, at) => {
  const facets = [`category:${product.category}`, ...product.tags.map((tag) => `tag:${tag}`)].join("|");
  const price = (product.priceMinor / 100).toFixed(2);
  return [product.title, product.slug, product.description, "", facets, "", "", `SKU${at}`, price, "standard", 100000, "false", "", ""]
    .map(quote)
    .join(",");
};
const csv = join(process.cwd(), "products.csv");
writeFileSync(csv, [columns, ...Array.from({ length: count }, (_, at) => lineOf(productAt(at), at))].join("\n"));

const initialData = {
  defaultLanguage: "en",
  defaultZone: "Americas",
  countries: [{ name: "United States", code: "US", zone: "Americas" }],
  taxRates: [{ name: "Standard Tax", percentage: 0 }],
  shippingMethods: [{ name: "Digital delivery", price: 0 }],
  paymentMethods: [{
    name: "Test payment",
    handler: { code: core.dummyPaymentHandler.code, arguments: [{ name: "automaticSettle", value: "true" }] },
  }],
  collections: CATEGORIES.map((slug) => ({
    name: slug,
    slug,
    filters: [{ code: "facet-value-filter", args: { facetValueNames: [`category:${slug}`], containsAny: false } }],
  })),
};
const app = await populate(() => core.bootstrap(config), initialData, csv);
console.log("products imported");

const database = app.get(core.TransactionalConnection).rawConnection;
async function untilDone(queue) {
  for (;;) {
    await sleep(1000);
    const [{ open }] = await database.query(
      `select count(*)::int as open from job_record where "isSettled" = false and "queueName" like $1`,
      [queue],
    );
    if (open === 0) return;
  }
}
await app.get(core.JobQueueService).start();
await untilDone("apply-collection-filters");
// The import queues a job per product, of which about three run per second. Building the index once replaces them.
await database.query(
  `delete from job_record where "isSettled" = false and "queueName" = 'update-search-index' and state = 'PENDING'`,
);
const context = await app.get(core.RequestContextService).create({ apiType: "admin" });
await app.get(core.SearchService).reindex(context);
await untilDone("%");
console.log("search index built");
await app.close();
process.exit(0);
