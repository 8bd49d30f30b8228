import { stat } from "node:fs/promises";
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import { action, example } from "../command.ts";
import { CommandError, describeFailure } from "../errors.ts";
import { profilePath } from "../profiles.ts";

interface Finding {
  check: string;
  isGood: boolean;
  text: string;
}

const MAX_CLOCK_DIFFERENCE_S = 60;

export default function define(command: Command): void {
  command.action(
    action(async (cli) => {
      const findings = [await checkProfile(), ...(await checkService(cli))];
      if (cli.output.isJson) cli.output.json(findings);
      else
        for (const { check, isGood, text } of findings)
          cli.output.line(
            `${isGood ? cli.output.style("green", "ok  ") : cli.output.style("red", "BAD ")} ${check}: ${text}`,
          );
      const bad = findings.filter(({ isGood }) => !isGood);
      if (bad.length > 0) throw new CommandError(`${bad.length} of ${findings.length} checks failed`);
    }),
  );
  example(command, "stoa doctor");
}

async function checkProfile(): Promise<Finding> {
  const path = profilePath();
  const mode = await stat(path).then(
    (file) => file.mode & 0o777,
    () => null,
  );
  if (mode === null) return { check: "profiles", isGood: true, text: `none (${path})` };
  const isGood = process.platform === "win32" || (mode & 0o077) === 0;
  const text = isGood ? path : `others can read ${path}: run chmod 600 ${path}`;
  return { check: "profiles", isGood, text };
}

/** From the outside in; a check that fails ends the rest. */
async function checkService(cli: Cli): Promise<Finding[]> {
  const { baseUrl } = await cli.settings();
  const findings: Finding[] = [];
  const add = (check: string, isGood: boolean, text: string) => findings.push({ check, isGood, text });
  try {
    const ready = await fetch(new URL("/readyz", baseUrl), { signal: AbortSignal.timeout(10_000) });
    add(
      "service",
      ready.ok,
      `${new URL(baseUrl).origin} is ${ready.ok ? "ready" : `not ready (${ready.status})`}`,
    );
    checkClock(ready.headers.get("date"), add);
  } catch (error) {
    const { cause } = error as { cause?: { code?: string } };
    add("service", false, `${baseUrl} cannot be reached: ${cause?.code ?? (error as Error).message}`);
    return findings;
  }
  try {
    const { data, rateLimit } = await (await cli.stoa()).account.get().withResponse();
    add("account", true, `${data.email}, ${data.role}, plan ${data.plan}`);
    add("requests", (rateLimit.remaining ?? 1) > 0, `${rateLimit.remaining} of ${rateLimit.limit} left`);
  } catch (error) {
    const { lines } = describeFailure(error);
    add("account", false, lines.map((line) => line.replace(/^error: /, "")).join("; "));
  }
  return findings;
}

function checkClock(date: string | null, add: (check: string, isGood: boolean, text: string) => void): void {
  if (date === null) return;
  const seconds = Math.round((Date.now() - Date.parse(date)) / 1_000);
  const isGood = Math.abs(seconds) <= MAX_CLOCK_DIFFERENCE_S;
  const difference = `${Math.abs(seconds)} s ${seconds < 0 ? "behind" : "ahead of"} the service`;
  add(
    "clock",
    isGood,
    isGood ? "right" : `this machine is ${difference}: set its time, or signatures of webhooks are refused`,
  );
}
