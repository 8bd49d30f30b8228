import type { CreateProduct, ProductDetail, Stoa, UpdateProduct } from "@stoa/sdk";
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import { action, decimal, example, repeated } from "../command.ts";
import { Interrupted, UsageError } from "../errors.ts";
import { type BodyOptions, bodyOptions, readBody, readText } from "../fields.ts";
import { confirm } from "../prompts.ts";
import { productColumns, resultColumns } from "./columns.ts";

interface ProductOptions extends BodyOptions {
  title?: string;
  type?: string;
  description?: string;
  category?: string;
  price?: number;
  currency?: string;
  content?: string;
  contentFile?: string;
  tag?: string[];
  compatibility?: string[];
  changelog?: string;
  newVersion?: string;
  acknowledgesRegression?: boolean;
  ifMatch?: string;
  yes?: boolean;
}

const productOptions = (command: Command): Command =>
  bodyOptions(
    command
      .option("--title <text>", "the title")
      .option("--type <type>", "PROMPT or WORKFLOW")
      .option("--description <text>", "what a buyer gets")
      .option("--category <slug>", "a category of `stoa api GET /v1/categories`")
      .option("--price <price>", "such as 4.99", decimal)
      .option("--currency <code>", "such as USD")
      .option("--content <text>", "the prompt, or the definition of a workflow as JSON")
      .option("--content-file <file>", "a file with the content; - is standard input")
      .option("--tag <tag>", "a tag; repeat it for more", repeated)
      .option("--compatibility <provider>", "a provider that it runs with; repeat it for more", repeated),
  );

export function defineChanges(products: Command): void {
  const create = productOptions(products.command("create").description("Create a product as a draft")).action(
    action<ProductOptions>(async (cli, options) => {
      const body = await readProduct<CreateProduct>(options);
      const created = await (await cli.stoa()).products.create(body);
      showWarnings(cli, created.warnings);
      cli.output.object(created, [{ field: "id" }, { field: "status" }]);
    }),
  );
  example(
    create,
    'stoa products create --title Haiku --type PROMPT --price 4.99 --content "Write a haiku about {{topic}}."',
    "stoa products create --from product.yaml",
  );
  defineUpdate(products);
  defineMoves(products);
  const remove = products
    .command("delete")
    .description("Delete a product. Buyers keep access")
    .argument("<product>", "the product's id")
    .option("-y, --yes", "do not ask")
    .action(action<ProductOptions>(deleteProduct));
  example(remove, "stoa products delete prod_… --yes");
}

function defineUpdate(products: Command): void {
  const update = productOptions(
    products
      .command("update")
      .description("Change the given fields of a product")
      .argument("<product>", "the product's id")
      .option("--changelog <text>", "what is new, for a new version")
      .option("--new-version <number>", "the number of the new version, such as 2.0.0")
      .option("--acknowledges-regression", "the changelog says that the version passes fewer tests")
      .option("--if-match <etag>", "only if the product has still this ETag"),
  ).action(
    action<ProductOptions>(async (cli, options, id: string) => {
      const body = await readProduct<UpdateProduct>(options);
      if (Object.keys(body).length === 0)
        throw new UsageError("Nothing to change was given", "Such as --price 6.50; --help lists the fields.");
      const headers = options.ifMatch === undefined ? {} : { "if-match": options.ifMatch };
      const updated = await (await cli.stoa()).products.update(id, body, { headers });
      showWarnings(cli, updated.warnings);
      cli.output.object<ProductDetail>(updated, productColumns);
    }),
  );
  example(
    update,
    "stoa products update prod_… --price 6.50",
    'stoa products update prod_… --content-file prompt.txt --changelog "Shorter"',
  );
}

async function readProduct<T extends CreateProduct | UpdateProduct>(options: ProductOptions): Promise<T> {
  const { title, type, description, category, price, currency, compatibility } = options;
  const { changelog, acknowledgesRegression } = options;
  if (options.content !== undefined && options.contentFile !== undefined)
    throw new UsageError("--content and --content-file exclude each other", "Give one of them.");
  const content = options.contentFile === undefined ? options.content : await readText(options.contentFile);
  const own = { title, type: type?.toUpperCase(), description, category, price, currency, content };
  const version = { version: options.newVersion, changelog, acknowledgesRegression };
  const rest = { tags: options.tag, compatibility, ...version };
  return readBody<T>(options, { ...own, ...rest } as unknown as Partial<T>);
}

const showWarnings = (cli: Cli, warnings: { field: string; reason: string }[]) => {
  for (const { field, reason } of warnings) cli.output.report(`warning: ${field}: ${reason}`);
};

type Move = "publish" | "unpublish" | "withdraw";

const moves: Record<Move, string> = {
  publish: "Offer a product for sale",
  unpublish: "Take a product off sale. Buyers keep access",
  withdraw: "Take a product back from the moderators. It is a draft again",
};

function defineMoves(products: Command): void {
  for (const [name, description] of Object.entries(moves) as [Move, string][]) {
    const command = products
      .command(name)
      .description(description)
      .argument("<product>", "the product's id")
      .action(
        action(async (cli, _options, id: string) => {
          const stoa: Stoa = await cli.stoa();
          cli.output.object(await stoa.products[name](id), resultColumns);
        }),
      );
    example(command, `stoa products ${name} prod_…`);
  }
}

async function deleteProduct(cli: Cli, { yes }: ProductOptions, id: string): Promise<void> {
  const stoa = await cli.stoa();
  if (!yes) {
    const { title } = await stoa.products.get(id);
    if (!(await confirm(`Delete ${title} (${id})?`, "Pass --yes."))) throw new Interrupted();
  }
  cli.output.object(await stoa.products.delete(id), [{ field: "id" }, { field: "status" }]);
}
