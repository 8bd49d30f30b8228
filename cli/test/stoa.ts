import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Forked, forkProgram } from "@stoa/service/test/child.ts";
import type { CommandRequest } from "./command-process.ts";

export const STOA = fileURLToPath(new URL("../bin/stoa.mjs", import.meta.url));
/** Longer than a test file may take: ends what a failed test left, and never a command that is slow. */
const TIMEOUT_MS = 600_000;

export interface Finished {
  code: number | null;
  stdout: string;
  stderr: string;
}

interface Place {
  /** The address of the service, without /v1. */
  origin: string;
  /** undefined: not logged in. */
  key?: string | undefined;
}

/** A command that hangs must not keep those of the next file. */
const COMMAND_TIMEOUT_MS = 240_000;
const COMMANDS = new URL("./command-process.ts", import.meta.url);
let commands: Forked | null = null;
let lastCommand: Promise<unknown> = Promise.resolve();

/** Runs commands of all files of a worker in one process, one at a time. */
function runCommand(request: CommandRequest): Promise<Finished> {
  const run = async () => {
    commands ??= forkProgram(COMMANDS);
    const { child, answer } = commands;
    const answered = answer();
    child.send(request);
    const giveUp = setTimeout(() => child.kill("SIGKILL"), COMMAND_TIMEOUT_MS);
    try {
      return (await answered) as Finished;
    } catch (error) {
      commands = null;
      throw error;
    } finally {
      clearTimeout(giveUp);
    }
  };
  const finished = lastCommand.then(run, run);
  lastCommand = finished;
  return finished;
}

interface Options {
  /** Standard input. */
  input?: string;
  env?: NodeJS.ProcessEnv;
}

/** The command line of one user: with a folder for its profiles, and one to work in. */
export async function openCommandLine({ origin, key }: Place) {
  const folder = await mkdtemp(join(tmpdir(), "stoa-cli-"));
  const env: NodeJS.ProcessEnv = {
    PATH: process.env["PATH"],
    HOME: folder,
    XDG_CONFIG_HOME: join(folder, "config"),
    // Opens nothing.
    BROWSER: "true",
    STOA_BASE_URL: `${origin}/v1`,
    ...(key && { STOA_API_KEY: key }),
  };

  /** A command in a process of its own, which may run until it is interrupted. */
  function start(args: readonly string[], options: Options = {}) {
    const child = spawn(process.execPath, [STOA, ...args], {
      cwd: folder,
      env: { ...env, ...options.env },
      timeout: TIMEOUT_MS,
      killSignal: "SIGKILL",
    });
    const output = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const)
      child[name].setEncoding("utf8").on("data", (text: string) => {
        output[name] += text;
      });
    child.stdin.on("error", () => {});
    child.stdin.end(options.input ?? "");
    const ended = new Promise<Finished>((resolve) =>
      child.once("close", (code) => resolve({ code, ...output })),
    );
    return { child, output, ended };
  }

  return {
    folder,
    env,
    start,
    /** Runs a command to its end, in the process of all such commands. */
    run: (args: readonly string[], { input = "", env: more = {} }: Options = {}): Promise<Finished> =>
      runCommand({ args, folder, env: { ...env, ...more } as Record<string, string>, input }),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

export type CommandLine = Awaited<ReturnType<typeof openCommandLine>>;
