import type { Command } from "commander";
import { openInBrowser } from "../browser.ts";
import { action, example } from "../command.ts";
import { UsageError } from "../errors.ts";

/** Pages of the service, by the name that the command takes. */
const pages: Record<string, string> = {
  home: "/",
  docs: "/docs",
  account: "/account",
  mailbox: "/dev/mail",
  inboxes: "/dev/hooks",
};

export default function define(command: Command): void {
  const names = Object.keys(pages).join(", ");
  command
    .argument("[page]", `${names}, or a path`, "home")
    .option("--print", "print the address instead of opening it")
    .action(
      action<{ print?: boolean }, [string]>(async (cli, { print }, page) => {
        const { baseUrl } = await cli.settings();
        const path = pages[page] ?? (page.startsWith("/") ? page : undefined);
        if (path === undefined) throw new UsageError(`There is no page ${page}`, `The pages are: ${names}.`);
        const url = new URL(path, baseUrl);
        if (print) return cli.output.line(url.href);
        cli.output.report(url.href);
        openInBrowser(url);
      }),
    );
  example(command, "stoa open docs");
}
