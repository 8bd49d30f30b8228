import type { Command } from "commander";
import { action, example, repeated } from "../command.ts";
import { CommandError, UsageError } from "../errors.ts";
import { readBody, readObject, splitPair } from "../fields.ts";

interface ApiOptions {
  field?: string[];
  from?: string;
  header?: string[];
  include?: boolean;
}

const methods = ["GET", "POST", "PATCH", "PUT", "DELETE"] as const;
type Method = (typeof methods)[number];

export default function define(command: Command): void {
  command
    .argument("<method>", methods.join(", "))
    .argument("<path>", "such as /v1/products")
    .option(
      "-f, --field <name=value>",
      "a query parameter of a GET or DELETE, else a field of the body",
      repeated,
    )
    .option("--from <file>", "the body as a JSON or YAML file; - is standard input")
    .option("-H, --header <name: value>", "a header of the request", repeated)
    .option("-i, --include", "print the status and the headers of the response on standard error")
    .action(
      action<ApiOptions, [string, string]>(async (cli, options, methodText, path) => {
        const method = readMethod(methodText);
        const stoa = await cli.stoa();
        const { baseUrl } = await cli.settings();
        const relative = toRelative(baseUrl, path);
        const hasQuery = method === "GET" || method === "DELETE";
        const fields = await readBody<Record<string, unknown>>({
          ...(options.field && { field: options.field }),
        });
        const fromFile = options.from ? await readObject(options.from) : undefined;
        const body = hasQuery ? fromFile : (fromFile ?? options.field) && { ...fromFile, ...fields };
        const { response } = await stoa.client
          .download(
            ...([method, relative] as const),
            { query: hasQuery ? fields : {}, ...(body && { body }) },
            { headers: readHeaders(options.header) },
          )
          .withResponse();
        if (options.include) {
          cli.output.report(`${response.status} ${response.statusText}`);
          for (const [name, value] of response.headers) cli.output.report(`${name}: ${value}`);
        }
        await writeBody(response, cli.output.write.bind(cli.output));
      }),
    );
  example(command, "stoa api GET /v1/products -f limit=3", "stoa api POST /v1/purchases -f productId=prod_…");
}

function readMethod(text: string): Method {
  const method = methods.find((each) => each === text.toUpperCase());
  if (method) return method;
  throw new UsageError(
    `${text} is no method`,
    `Use one of ${methods.join(", ")}: stoa api GET /v1/products.`,
  );
}

/** The path below the address of the API, with its query. */
function toRelative(baseUrl: string, text: string): string {
  if (!text.startsWith("/"))
    throw new UsageError(`The path ${JSON.stringify(text)} must start with /`, "Such as /v1/products.");
  const { pathname } = new URL(baseUrl);
  const url = new URL(text, "http://path");
  const isBelow = url.pathname === pathname || url.pathname.startsWith(`${pathname}/`);
  return (isBelow ? url.pathname.slice(pathname.length) : url.pathname) + url.search;
}

const readHeaders = (headers: string[] = []): Record<string, string> =>
  Object.fromEntries(
    headers.map((header) => {
      const [name, value] = splitPair(header.replace(/:\s*/, "="), "--header");
      return [name, value];
    }),
  );

/** JSON is indented for people; everything else is passed on as it is. */
async function writeBody(response: Response, write: (text: string) => Promise<void>): Promise<void> {
  const isJson = /json/.test(response.headers.get("content-type") ?? "");
  if (isJson && process.stdout.isTTY) return write(`${JSON.stringify(await response.json(), null, 2)}\n`);
  if (!response.body) return;
  try {
    for await (const chunk of response.body)
      if (!process.stdout.write(chunk)) await new Promise((resolve) => process.stdout.once("drain", resolve));
  } catch (error) {
    if ((error as Error).name === "AbortError") throw error;
    throw new CommandError(`The response was cut off: ${(error as Error).message}`, "Repeat the command.");
  }
}
