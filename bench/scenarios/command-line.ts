import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Options } from "../options.ts";
import { ROOT, start } from "../processes.ts";
import { median } from "../quantile.ts";
import { comparedWithAim, ms, type Report } from "../report.ts";
import { openShop } from "../shop.ts";

const ROUNDS = 21;
const BARE = ["-e", "0"];
const BUILT = join(ROOT, "cli/dist/main.js");
const HELP_AIM_MS = 80;
const OWN_AIM_MS = 150;

const commands = [
  "--help",
  "products list --help",
  "whoami",
  "products list --limit 1",
  "webhooks list",
  "api GET /v1/account",
];

/** The bundled command line beside a Node that does nothing, in turns. Times include the answers of a service on this machine. */
export async function measureCommandLine(options: Options): Promise<Report> {
  const { origin, reader } = await openShop(options, 100);
  await start(process.execPath, [join(ROOT, "scripts/build-cli.ts")], {}).output();
  const env = {
    ...process.env,
    STOA_BASE_URL: `${origin}/v1`,
    STOA_API_KEY: reader,
    XDG_CONFIG_HOME: join(tmpdir(), "stoa-bench-no-profiles"),
  };
  const run = (args: string[]): number => {
    const before = performance.now();
    const { status, stderr } = spawnSync(process.execPath, args, { env, encoding: "utf8" });
    if (status !== 0) throw new Error(`${args.join(" ")}: ${stderr}`);
    return performance.now() - before;
  };
  const times = new Map<string, number[]>(["", ...commands].map((command) => [command, []]));
  for (let round = 0; round < ROUNDS; round++)
    for (const [command, list] of times)
      list.push(run(command === "" ? BARE : [BUILT, ...command.split(" ")]));
  const bare = median(times.get("")!);
  return {
    columns: ["command", "ms", "over bare Node", "aim", "met"],
    rows: [
      ["`node -e 0`", ms(bare), "", "", ""],
      ...commands.map((command) => rowOf(command, median(times.get(command)!), bare)),
    ],
    notes: [`The median of ${ROUNDS} starts of each, in turns, with the bundle that is published.`],
  };
}

function rowOf(command: string, time: number, bare: number): string[] {
  const own = time - bare;
  const aim =
    command === "--help"
      ? { text: `≤ ${HELP_AIM_MS} ms in all`, met: time <= HELP_AIM_MS }
      : { text: `≤ ${OWN_AIM_MS} ms over`, met: own <= OWN_AIM_MS };
  return [`\`stoa ${command}\``, ms(time), ...comparedWithAim(ms(own), aim.text, aim.met)];
}
