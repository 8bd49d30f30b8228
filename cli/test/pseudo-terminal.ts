import { spawn, spawnSync } from "node:child_process";
import { stripVTControlCharacters } from "node:util";
import { until } from "@stoa/service/test/until.ts";
import { type CommandLine, STOA } from "./stoa.ts";

/** Runs a command in a pseudo-terminal: `script` of util-linux. */
const hasTerminals = spawnSync("script", ["--version"]).status === 0;
export const skipWithoutTerminal = hasTerminals ? false : "needs the command `script` of util-linux";

/** What a person sees and types. */
export function openTerminal(stoa: CommandLine, args: string[], env: NodeJS.ProcessEnv = {}) {
  const words = [process.execPath, STOA, ...args].map((part) => `'${part}'`).join(" ");
  const line = `stty cols 120 rows 40; exec ${words}`;
  const child = spawn("script", ["--quiet", "--flush", "--return", "--command", line, "/dev/null"], {
    cwd: stoa.folder,
    env: { ...stoa.env, TERM: "xterm-256color", PAGER: "cat", SHELL: "/bin/sh", ...env },
  });
  let screen = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    screen += text;
  });
  return {
    /** Without what sets colors and moves the cursor. */
    screen: () => stripVTControlCharacters(screen).replaceAll("\r", ""),
    sees(text: string | RegExp) {
      const has = () => (typeof text === "string" ? this.screen().includes(text) : text.test(this.screen()));
      return until(`${text} on the screen`, has, 30_000).catch((error) => {
        throw new Error(`${error.message}\n${this.screen()}`);
      });
    },
    type: (text: string) => child.stdin.write(text),
    ended: new Promise<number | null>((resolve) => child.once("close", resolve)),
    pid: child.pid!,
  };
}
