import type { ProductCard, ProductDetail } from "@stoa/sdk";
import { money } from "../format.ts";
import type { Column } from "../output.ts";

/** Under a name of its own, so that `--fields price` gives the number. */
const priceColumn = {
  field: "priceText",
  title: "price",
  format: ({ price, currency }: { price: number; currency: string }) => money(price, currency),
};

export const cardColumns: Column<ProductCard>[] = [
  { field: "id" },
  { field: "title" },
  { field: "type", format: ({ type }) => type.toLowerCase() },
  { field: "status" },
  priceColumn,
  { field: "stats.purchases", title: "sold" },
  {
    field: "rating.average",
    title: "rating",
    format: ({ rating }) => (rating.count > 0 ? rating.average : ""),
  },
  { field: "author.name", title: "author" },
];

export const productColumns: Column<ProductDetail>[] = [
  { field: "id" },
  { field: "title" },
  { field: "type", format: ({ type }) => type.toLowerCase() },
  { field: "status" },
  { field: "version" },
  priceColumn,
  { field: "category" },
  { field: "tags", format: ({ tags }) => tags.join(", ") },
  { field: "compatibility", format: ({ compatibility }) => compatibility.join(", ") },
  { field: "variables", format: ({ variables }) => variables.map(({ name }) => name).join(", ") },
  { field: "files", format: ({ files }) => files?.map(({ name }) => name).join(", ") },
  { field: "author.name", title: "author" },
  { field: "stats.purchases", title: "sold" },
  { field: "description" },
  { field: "content", format: ({ content, contentPreview }) => content ?? contentPreview },
];

/** After a change. */
export const resultColumns: Column<ProductDetail>[] = [
  { field: "id" },
  { field: "title" },
  { field: "status" },
  { field: "version" },
];
