// Creates a shop's basics and COUNT products with Medusa's own workflows: `medusa exec ./seed.js`.
const BATCH = 100;

module.exports = { default: async function seed({ container }) {
  const flows = require("@medusajs/medusa/core-flows");
  const { productAt, CATEGORIES, TAGS } = await import(process.env.PRODUCTS);
  const count = Number(process.env.COUNT);
  // Uses the existing sales channel: with a second one, every list first reads the ids of all products of its channel.
  const query = container.resolve("query");
  const { data: [channel] } = await query.graph({ entity: "sales_channel", fields: ["id"] });
  const { result: [key] } = await flows.createApiKeysWorkflow(container)
    .run({ input: { api_keys: [{ title: "web", type: "publishable", created_by: "" }] } });
  await flows.linkSalesChannelsToApiKeyWorkflow(container).run({ input: { id: key.id, add: [channel.id] } });
  await flows.createRegionsWorkflow(container)
    .run({ input: { regions: [{ name: "US", currency_code: "usd", countries: ["us"], payment_providers: ["pp_system_default"] }] } });
  await flows.createTaxRegionsWorkflow(container).run({ input: [{ country_code: "us", provider_id: "tp_system" }] });
  const { result: categories } = await flows.createProductCategoriesWorkflow(container)
    .run({ input: { product_categories: CATEGORIES.map((slug) => ({ name: slug, handle: slug, is_active: true })) } });
  const { result: tags } = await flows.createProductTagsWorkflow(container)
    .run({ input: { product_tags: TAGS.map((value) => ({ value })) } });
  const categoryIds = Object.fromEntries(categories.map(({ handle, id }) => [handle, id]));
  const tagIds = Object.fromEntries(tags.map(({ value, id }) => [value, id]));

  const toMedusa = (product, at) => ({
    title: product.title,
    handle: product.slug,
    description: product.description,
    status: "published",
    category_ids: [categoryIds[product.category]],
    tag_ids: product.tags.map((tag) => tagIds[tag]),
    sales_channels: [{ id: channel.id }],
    options: [{ title: "Licence", values: ["Standard"] }],
    variants: [{
      title: "Standard",
      sku: `SKU${at}`,
      manage_inventory: false,
      options: { Licence: "Standard" },
      prices: [{ amount: product.priceMinor / 100, currency_code: "usd" }],
    }],
  });
  for (let from = 0; from < count; from += BATCH) {
    const numbers = Array.from({ length: Math.min(BATCH, count - from) }, (_, at) => from + at);
    const products = numbers.map((at) => toMedusa(productAt(at), at));
    await flows.createProductsWorkflow(container).run({ input: { products } });
    if (from % 1000 === 0) console.log(`${from} of ${count} products`);
  }
} };
