import type { ProductDetail } from "@stoa/sdk";
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import { action, example } from "../command.ts";
import { exitCodes } from "../errors.ts";
import { withoutControls } from "../output.ts";
import type { PullOptions } from "../project/pull.ts";
import type { PushOptions } from "../project/push.ts";
import { resultColumns } from "./columns.ts";

/** Differences are no error, and a script must tell them from one. */

export function defineProject(products: Command): void {
  const pull = products
    .command("pull")
    .description("Bring a product into a folder, or changes of the service into the folder of a product")
    .argument("[product]", "the product's id; without it, the product of the folder")
    .argument("[folder]", "the folder", ".")
    .option("--force", "discard the changes in the folder")
    .action(action<PullOptions, [string | undefined, string]>(pullProduct));
  example(pull, "stoa products pull prod_… my-prompt", "stoa products pull");
  const push = products
    .command("push")
    .description("Make the product what its folder has: create it, or send the changes")
    .argument("[folder]", "the folder", ".")
    .option("-y, --yes", "do not ask")
    .option("--force", "overwrite what changed on the service")
    .option("--publish", "then offer the product for sale")
    .option("--changelog <text>", "what is new, for a new version")
    .option("--acknowledges-regression", "the changelog says that the version passes fewer tests")
    .addHelpText(
      "after",
      "\nA published product gets a new version by new content, and by each new file. In a terminal, push shows the changes and asks.",
    )
    .action(
      action<PushOptions, [string]>(async (cli, options, folder) => {
        const { push: pushProject } = await import("../project/push.ts");
        showProduct(cli, await pushProject(cli, folder, options));
      }),
    );
  example(push, "stoa products push", 'stoa products push my-prompt --publish --changelog "Shorter"');
  const diff = products
    .command("diff")
    .description("Show what a push would change")
    .argument("[folder]", "the folder", ".")
    .option("--exit-code", `exit with ${exitCodes.unequal} if there are differences`)
    .action(action<{ exitCode?: boolean }, [string]>(showDiff));
  example(diff, "stoa products diff", "stoa products diff my-prompt --exit-code");
}

async function pullProduct(
  cli: Cli,
  options: PullOptions,
  first: string | undefined,
  second: string,
): Promise<void> {
  const isId = first === undefined || /^prod_\w+$/.test(first);
  const [id, folder] = isId ? [first, second] : [undefined, first];
  const { pull } = await import("../project/pull.ts");
  const { product, taken } = await pull(cli, folder, id, options);
  cli.output.report(taken.length > 0 ? `Updated ${taken.join(", ")}.` : "The folder has everything already.");
  showProduct(cli, product);
}

/** The id alone is what the next command takes. */
function showProduct(cli: Cli, product: ProductDetail): void {
  const { id, title, version, status } = product;
  if (cli.output.isJson || cli.options.fields !== undefined) cli.output.object(product, resultColumns);
  else cli.output.line(withoutControls(id));
  cli.output.report(withoutControls(`${title}, version ${version}: ${status}`));
}

async function showDiff(cli: Cli, { exitCode }: { exitCode?: boolean }, folder: string): Promise<void> {
  const { diffProject } = await import("../project/diff.ts");
  const { paintDiff } = await import("../project/show-diff.ts");
  const { product, lines, local, remote } = await diffProject(cli, folder);
  if (exitCode && local.length + remote.length > 0) process.exitCode = exitCodes.unequal;
  if (cli.output.isJson) return cli.output.json({ id: product.id, local, remote });
  if (lines.length > 0) await cli.output.page(paintDiff(lines, cli.output, process.stdout));
  if (remote.length > 0)
    cli.output.report(`Changed on the service since the last pull or push: ${remote.join(", ")}.`);
}
