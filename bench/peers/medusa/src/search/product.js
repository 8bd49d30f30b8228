// The index of Medusa's Search Module, which has none by default: the fields that a list shows, searches, filters and sorts by.
const { defineSearchIndex, graphConsume, graphSeed, search } = require("@medusajs/framework/utils");

const source = {
  fields: [
    "id", "title", "description", "handle", "status", "created_at",
    "categories.handle", "tags.value", "sales_channels.id", "variants.price_set.prices.amount",
  ],
  transform: (products) => products.map((product) => ({
    id: product.id,
    title: product.title,
    description: product.description,
    handle: product.handle,
    status: product.status,
    created_at: product.created_at,
    price: product.variants?.[0]?.price_set?.prices?.[0]?.amount ?? 0,
    categories: (product.categories ?? []).map(({ handle }) => handle),
    tags: (product.tags ?? []).map(({ value }) => value),
    sales_channel_ids: (product.sales_channels ?? []).map(({ id }) => id),
  })),
};

module.exports = {
  default: defineSearchIndex({
    name: "product",
    entity: "product",
    fields: search.define({
      id: search.keyword().filterable(),
      title: search.text().searchable({ weight: 3 }),
      description: search.text().searchable(),
      handle: search.keyword().filterable(),
      status: search.keyword().filterable(),
      created_at: search.date().sortable(),
      price: search.float().filterable().sortable(),
      categories: search.keyword().array().filterable(),
      tags: search.keyword().array().filterable(),
      sales_channel_ids: search.keyword().array().filterable(),
    }),
    events: ["product.created", "product.updated", "product.deleted"],
    consume: graphConsume(source),
    seed: graphSeed(source),
  }),
};
