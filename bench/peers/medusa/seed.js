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
  await createShippingOption({ container, flows, channel });
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

/** A free option for the orders. The products have no shipping profile, so that no order needs it. */
async function createShippingOption({ container, flows, channel }) {
  const link = container.resolve("link");
  const { result: [location] } = await flows.createStockLocationsWorkflow(container)
    .run({ input: { locations: [{ name: "Digital delivery", address: { address_1: "", country_code: "us" } }] } });
  const { result: [profile] } = await flows.createShippingProfilesWorkflow(container)
    .run({ input: { data: [{ name: "Digital delivery", type: "digital" }] } });
  const set = await container.resolve("fulfillment").createFulfillmentSets({
    name: "Digital delivery",
    type: "shipping",
    service_zones: [{ name: "US", geo_zones: [{ type: "country", country_code: "us" }] }],
  });
  const stock_location = { stock_location_id: location.id };
  await link.create({ stock_location, fulfillment: { fulfillment_provider_id: "manual_manual" } });
  await link.create({ stock_location, fulfillment: { fulfillment_set_id: set.id } });
  await flows.createShippingOptionsWorkflow(container).run({ input: [{
    name: "Digital delivery",
    price_type: "flat",
    provider_id: "manual_manual",
    service_zone_id: set.service_zones[0].id,
    shipping_profile_id: profile.id,
    type: { label: "Digital", description: "Delivered at once", code: "digital" },
    prices: [{ currency_code: "usd", amount: 0 }],
    rules: [
      { attribute: "enabled_in_store", value: "true", operator: "eq" },
      { attribute: "is_return", value: "false", operator: "eq" },
    ],
  }] });
  await flows.linkSalesChannelsToStockLocationWorkflow(container)
    .run({ input: { id: location.id, add: [channel.id] } });
}
