import type { ProductRunCounts, ProductsListQuery } from "@stoa/sdk";
import type { Command } from "commander";
import { action, decimal, example, type ListOptions, listOptions, readList } from "../command.ts";
import { findProduct } from "../find-product.ts";
import { listCommand } from "../resource.ts";
import { cardColumns, productColumns } from "./columns.ts";

type ListProducts = ListOptions & Omit<ProductsListQuery, "limit" | "page"> & { mine?: boolean };

export function defineReads(products: Command): void {
  defineList(products);
  const get = products
    .command("get")
    .description("Show a product. The first look of a buyer at the content ends the instant refund")
    .argument("<product>", "the product's id or title")
    .action(
      action(async (cli, _options, text: string) => {
        cli.output.object(await findProduct(await cli.stoa(), text), productColumns);
      }),
    );
  example(
    get,
    "stoa products get prod_…",
    'stoa products get "Haiku about anything"',
    "stoa products get prod_… --fields content --json",
  );
  defineVersions(products);
  const history = listOptions(
    products
      .command("history")
      .description("List the changes of a product's status, with the reasons")
      .argument("<product>", "the product's id"),
  ).action(
    action<ListOptions>(async (cli, options, id: string) => {
      const stoa = await cli.stoa();
      const { items, total } = await readList((page) => stoa.products.history(id, page), options);
      const fields = ["at", "action", "from", "to", "by", "reason"];
      await cli.output.list(
        items,
        fields.map((field) => ({ field })),
        total,
      );
    }),
  );
  example(history, "stoa products history prod_…");
  listCommand<ProductRunCounts, { product?: string; sort?: "runs" | "failures" }>(products, {
    name: "runs",
    description: "List how often buyers ran your products in the last 30 days",
    options: (list) =>
      list
        .option("--product <id>", "of one product, or of several, separated by commas")
        .option("--sort <by>", "runs or failures: the most first"),
    examples: ["stoa products runs --sort failures"],
    columns: [
      { field: "product.id", title: "Product" },
      { field: "product.title", title: "Title" },
      { field: "last30Days", title: "Runs" },
      { field: "failed30Days", title: "Failed" },
      { field: "total", title: "All runs" },
      { field: "buyers", title: "Buyers" },
    ],
    open: (stoa, page, { product, sort }) => stoa.products.runCounts({ ...page, productIds: product, sort }),
  });
}

function defineList(products: Command): void {
  const list = listOptions(
    products
      .command("list")
      .description("List and search the products on sale, or your own ones")
      .option("--search <words>", "products with these words")
      .option("--mine", "your own products, in every status")
      .option("--status <status>", "with --mine: draft, published, …")
      .option("--author <id>", "products of this author")
      .option("--type <type>", "prompt or workflow")
      .option("--category <slug>", "products of this category and its subcategories")
      .option("--tag <tag>", "products with this tag")
      .option("--provider <id>", "products that run with this provider")
      .option("--lang <tag>", "products in this language, such as en")
      .option("--min-price <price>", "products from this price", decimal)
      .option("--max-price <price>", "products up to this price", decimal)
      .option("--currency <code>", "the currency of the prices")
      .option("--min-rating <stars>", "products with at least so many stars", decimal)
      .option("--tested-on <model>", "products measured on this model, such as openai/gpt-5-mini")
      .option("--min-pass-rate <rate>", "products whose pass rate is at least this, from 0 to 1", decimal)
      .option(
        "--sort <by>",
        "relevance, createdAt, updatedAt, price, rating, popularity, views, trending, passRate, title, …",
      )
      .option("--order <order>", "asc or desc"),
  ).action(action<ListProducts>(listProducts));
  example(
    list,
    "stoa products list --search interview --category writing --max-price 5",
    "stoa products list --mine --status draft --fields id,title,updatedAt",
  );
}

const listProducts = async (...[cli, options]: Parameters<Parameters<typeof action<ListProducts>>[0]>) => {
  const { search, status, type, category, tag, provider, lang, minPrice, maxPrice, currency } = options;
  const { minRating, testedOn, minPassRate, sort, order, mine } = options;
  const author = mine ? "me" : options.author;
  const query = {
    ...{ search, status, type, category, tag, provider, lang, minPrice, maxPrice, currency },
    ...{ minRating, testedOn, minPassRate, sort, order, author },
  };
  const stoa = await cli.stoa();
  const { items, total } = await readList((page) => stoa.products.list({ ...query, ...page }), options);
  await cli.output.list(items, cardColumns, total);
};

function defineVersions(products: Command): void {
  const versions = listOptions(
    products
      .command("versions")
      .description("List the versions of a product, or show one of them with its content")
      .argument("<product>", "the product's id")
      .argument("[version]", "such as 1.0.0"),
  ).action(
    action<ListOptions, [string, string?]>(async (cli, options, id, version) => {
      const stoa = await cli.stoa();
      if (version !== undefined) {
        const columns = ["version", "createdAt", "current", "changelog", "content"].map((field) => ({
          field,
        }));
        return cli.output.object(await stoa.products.versions.get(id, version), columns);
      }
      const { items, total } = await readList((page) => stoa.products.versions.list(id, page), options);
      const columns = ["version", "createdAt", "current", "readable", "changelog"].map((field) => ({
        field,
      }));
      await cli.output.list(items, columns, total);
    }),
  );
  example(versions, "stoa products versions prod_…", "stoa products versions prod_… 1.0.0 --fields content");
}
