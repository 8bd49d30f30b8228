/**
 * `npm run check`: runs the scripts `check:…` of package.json at once, as many as there are cores, and prints the output of those that
 * fail. With names, e.g. `npm run check -- types lint`, runs only these.
 */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "..");
const PREFIX = "check:";
const { scripts } = JSON.parse(readFileSync(resolve(ROOT, "package.json"), "utf8")) as {
  scripts: Record<string, string>;
};
const known = Object.keys(scripts).filter((name) => name.startsWith(PREFIX));
const named = process.argv.slice(2).map((name) => `${PREFIX}${name}`);
for (const name of named) {
  if (known.includes(name)) continue;
  console.error(`No script ${name} in package.json. Known: ${known.join(", ")}.`);
  process.exit(2);
}
// In the order of package.json, where the longest ones are first.
const waiting = named.length > 0 ? named : known;

/** Resolves when no check is left. */
async function runChecks(): Promise<void> {
  for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) await runCheck(name);
}

async function runCheck(name: string): Promise<void> {
  const startedAt = performance.now();
  // `node --run` finds the commands of node_modules/.bin as npm does, without npm's own start.
  const child = spawn(process.execPath, ["--run", name], { cwd: ROOT, stdio: ["ignore", "pipe", "pipe"] });
  const output: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => void output.push(text));
  const code = await new Promise<number | null>((done) => child.once("close", done));
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
  console.log(`${code === 0 ? "✔" : "✖"} ${name} (${seconds} s)`);
  if (code === 0) return;
  console.log(output.join(""));
  process.exitCode = 1;
}

await Promise.all(Array.from({ length: availableParallelism() }, runChecks));
