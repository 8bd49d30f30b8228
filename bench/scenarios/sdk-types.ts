import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Options } from "../options.ts";
import { atEnd, ROOT, start } from "../processes.ts";
import { median } from "../quantile.ts";
import { comparedWithAim, type Report } from "../report.ts";

const ROUNDS = 5;
const AIM_SECONDS = 0.3;
const TSC = join(ROOT, "node_modules/typescript/bin/tsc");

const program = `import { Stoa } from "@stoa/sdk";
export async function shop(stoa: Stoa): Promise<string> {
  const [product] = await stoa.products.list({ search: "haiku" }).toArray({ limit: 1 });
  const { orderId } = await stoa.purchases.create({ productId: product!.id });
  const { output } = await stoa.ai.execute({ productId: product!.id, apiKeyId: "sandbox", variables: {} });
  const { secret } = await stoa.webhooks.create({ url: "https://example.com/" });
  const { email } = await stoa.account.get();
  return [orderId, output, secret, email].join();
}
`;
const files: Record<string, string> = {
  "five.ts": program,
  "none.ts": `export const shop = async (names: string[]): Promise<string> => names.join();\n`,
  "package.json": `{ "type": "module" }`,
};
const OPTIONS = "--noEmit --strict --target es2022 --module nodenext --lib es2022,dom".split(" ");

/** The time that the SDK's types add to a type check. */
export async function measureSdkTypes(_options: Options): Promise<Report> {
  const folder = await installBuiltSdk();
  const rows: string[][] = [];
  for (const [what, more] of [
    ["with skipLibCheck, as `tsc --init` sets it", ["--skipLibCheck"]],
    ["without skipLibCheck", []],
  ] as const) {
    const none: number[] = [];
    const five: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      none.push(await secondsOf(folder, "none.ts", more));
      five.push(await secondsOf(folder, "five.ts", more));
    }
    const added = median(five) - median(none);
    rows.push([
      what,
      `${median(none).toFixed(2)} s`,
      `${median(five).toFixed(2)} s`,
      ...comparedWithAim(`${added.toFixed(2)} s`, `≤ ${AIM_SECONDS} s`, added <= AIM_SECONDS),
    ]);
  }
  return {
    columns: ["type check of one file", "without the SDK", "five of its resources", "added", "aim", "met"],
    rows,
    notes: [`Whole runs of \`tsc --noEmit\`, in turn: medians of ${ROUNDS}.`],
  };
}

/** A folder with the files, and the SDK as its package has it. */
async function installBuiltSdk(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "stoa-bench-sdk-"));
  atEnd(() => rm(folder, { recursive: true, force: true }));
  await start(process.execPath, ["scripts/build-sdk.ts"], {}).output();
  const installed = join(folder, "node_modules/@stoa/sdk");
  await mkdir(installed, { recursive: true });
  for (const part of ["package.json", "dist"])
    await cp(join(ROOT, "sdk", part), join(installed, part), { recursive: true });
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  return folder;
}

async function secondsOf(folder: string, file: string, options: readonly string[]): Promise<number> {
  const begun = performance.now();
  await start(process.execPath, [TSC, ...OPTIONS, ...options, file], { cwd: folder }).output();
  return (performance.now() - begun) / 1_000;
}
