import type { Command } from "commander";
import { action, example } from "../command.ts";

export function defineAttachments(products: Command): void {
  const files = products.command("files").description("Add, list and remove the files that buyers download");
  const add = files
    .command("add")
    .description("Add a file, or replace the one of the same name")
    .argument("<product>", "the product's id")
    .argument("<path>", "the file")
    .option("--changelog <text>", "what is new, for a new version")
    .action(
      action<{ changelog?: string }, [string, string]>(async (cli, { changelog }, id, path) => {
        const { openUpload, UPLOAD } = await import("../progress.ts");
        const { file, progress } = await openUpload(path);
        const form = { file, ...(changelog !== undefined && { changelog }) };
        const added = await (await cli.stoa()).files.create(id, form, UPLOAD).finally(() => progress.end());
        cli.output.object(added, [
          { field: "id" },
          { field: "name" },
          { field: "size" },
          { field: "version" },
        ]);
      }),
    );
  example(add, 'stoa products files add prod_… guide.pdf --changelog "With a guide"');
  const list = files
    .command("list")
    .description("List the files of a product")
    .argument("<product>", "the product's id")
    .action(
      action(async (cli, _options, id: string) => {
        const product = await (await cli.stoa()).products.get(id);
        const columns = ["id", "name", "size", "type"].map((field) => ({ field }));
        await cli.output.list(product.files ?? [], columns);
      }),
    );
  example(list, "stoa products files list prod_…");
  defineRemove(files, "file");
  defineImages(products);
  example(files, "stoa products files add prod_… guide.pdf");
}

function defineImages(products: Command): void {
  const images = products.command("images").description("Add, list and remove the images of a product");
  const add = images
    .command("add")
    .description("Add an image. The first image is the cover")
    .argument("<product>", "the product's id")
    .argument("<path>", "a PNG, JPEG, WebP, GIF or AVIF")
    .option("--alt <text>", "a description for people who cannot see the image")
    .action(
      action<{ alt?: string }, [string, string]>(async (cli, { alt }, id, path) => {
        const { openUpload, UPLOAD } = await import("../progress.ts");
        const { file, progress } = await openUpload(path);
        const form = { file, ...(alt !== undefined && { alt }) };
        const added = await (await cli.stoa()).images.create(id, form, UPLOAD).finally(() => progress.end());
        cli.output.object(added, [{ field: "id" }, { field: "alt" }, { field: "url" }]);
      }),
    );
  example(add, 'stoa products images add prod_… cover.png --alt "A drop of rain"');
  const list = images
    .command("list")
    .description("List the images of a product")
    .argument("<product>", "the product's id")
    .action(
      action(async (cli, _options, id: string) => {
        const { gallery } = await (await cli.stoa()).products.get(id);
        const columns = ["id", "alt", "width", "height", "url"].map((field) => ({ field }));
        await cli.output.list(gallery, columns);
      }),
    );
  example(list, "stoa products images list prod_…");
  defineRemove(images, "image");
  example(images, "stoa products images add prod_… cover.png");
}

function defineRemove(group: Command, what: "file" | "image"): void {
  const remove = group
    .command("remove")
    .description(what === "file" ? "Remove a file. Buyers of older versions keep it" : "Remove an image")
    .argument("<product>", "the product's id")
    .argument(`<${what}>`, `the id of the ${what}`)
    .action(
      action<object, [string, string]>(async (cli, _options, id, attachmentId) => {
        const stoa = await cli.stoa();
        const removed = await stoa[what === "file" ? "files" : "images"].delete(id, attachmentId);
        cli.output.object(removed, [{ field: "id" }]);
      }),
    );
  example(remove, `stoa products ${what}s remove prod_… ${what === "file" ? "file" : "img"}_…`);
}
