import { type ChildProcess, spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { openSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../", import.meta.url));
const devNull = openSync("/dev/null", "w");
const HARD_END_MS = 20_000;
/** In the error of a process that ended early. */
const LAST_LINES = 20;
/** A process's own children may hold its output open after its end. */
const LAST_LINES_MS = 10_000;

const endings: (() => Promise<unknown>)[] = [];

/** Registers a cleanup for the end of the run, in every case. */
export const atEnd = (end: () => Promise<unknown>) => void endings.push(end);

let ending: Promise<void> | undefined;

/** Cleans up in reverse order. A signal and the end of the run may both call it. */
export function endAll(): Promise<void> {
  ending ??= (async () => {
    for (let end = endings.pop(); end; end = endings.pop()) await end();
  })();
  return ending;
}

export interface Started {
  pid: number;
  /** Resolves with the first matching line; rejects when the process ends before. */
  waitForLine(pattern: RegExp): Promise<RegExpExecArray>;
  /** All of stdout until the process ends by itself. */
  output(): Promise<string>;
  /** SIGTERM, then SIGKILL if the process does not end. */
  end(): Promise<void>;
}

export interface Start {
  /** The working folder; default: the repository's root. */
  cwd?: string;
  env?: Record<string, string>;
  /** For stdin; default: nothing. */
  input?: string;
  /** What happens to stderr, which has the service's log: `read` adds it to the lines of `waitForLine`. */
  errors?: "inherit" | "discard" | "read";
}

/** Starts a process, which is ended by its id, at the latest at the end of the run. */
export function start(
  command: string,
  args: string[],
  { cwd = ROOT, env, input, errors = "inherit" }: Start,
): Started {
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: [
      "pipe",
      "pipe",
      { inherit: "inherit", discard: devNull, read: "pipe" }[errors] as "pipe" | number,
    ],
  });
  child.stdin!.end(input);
  const lines: string[] = [];
  const lineEvents = new EventEmitter();
  for (const stream of [child.stdout, child.stderr]) {
    if (!stream) continue;
    createInterface({ input: stream }).on("line", (line) => {
      lines.push(line);
      lineEvents.emit("line", line);
    });
  }
  const gone = once(child, "exit");
  const closed = once(child, "close");
  closed.catch(() => {}); // `gone` reports it.
  const readLastLines = () => Promise.race([closed, sleep(LAST_LINES_MS, undefined, { ref: false })]);
  const endError = () => {
    const reason = child.signalCode ?? child.exitCode;
    const shown = [`${command} ${args.join(" ")} ended with ${reason}`, ...lines.slice(-LAST_LINES)];
    return new Error(shown.join("\n"));
  };
  const end = () => endProcess(child, gone);
  atEnd(end);
  return {
    pid: child.pid!,
    waitForLine: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (line: string) => {
          const match = pattern.exec(line);
          if (match) resolve(match);
        };
        lines.forEach(look);
        lineEvents.on("line", look);
        gone.then(readLastLines).then(() => reject(endError()), reject);
      }),
    async output() {
      await closed;
      if (child.exitCode !== 0) throw endError();
      return lines.join("\n");
    },
    end,
  };
}

async function endProcess(child: ChildProcess, gone: Promise<unknown>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  const hardEnd = setTimeout(() => child.kill("SIGKILL"), HARD_END_MS);
  await gone;
  clearTimeout(hardEnd);
}

/** Starts a script of this folder in its own process. */
export const startScript = (script: URL, args: string[], options: Start = {}) =>
  start(process.execPath, [fileURLToPath(script), ...args], options);

/** Node's arguments of `npm start`, so that the service is measured as it is run. */
export function argumentsOfStart(root = ROOT): string[] {
  const { scripts } = createRequire(import.meta.url)(join(root, "package.json")) as {
    scripts: { start: string };
  };
  return scripts.start.split(" ").slice("exec node".split(" ").length);
}
