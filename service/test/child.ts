import { type ChildProcess, fork } from "node:child_process";

/** A program of service/test/ in a process of its own. */
export interface Forked {
  child: ChildProcess;
  /** The signal that ended it. */
  ended: Promise<NodeJS.Signals | null>;
  /** The next message; rejects with stderr when the process ends before. */
  answer(): Promise<unknown>;
}

/** Starts the program and sends it `message`, if any. */
export function forkProgram(program: URL, message?: object): Forked {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const stdio = ["ignore", "inherit", "pipe", "ipc"] as const;
  const child = fork(program, { serialization: "advanced", execArgv: [], env, stdio: [...stdio] });
  let stderr = "";
  child.stderr!.setEncoding("utf8").on("data", (text) => {
    stderr += text;
  });
  // "close" follows after stderr has been read.
  const ended = new Promise<NodeJS.Signals | null>((resolve) => {
    child.once("close", (_code, signal) => resolve(signal));
  });
  // answer() reports a child that has ended.
  if (message) child.send(message, () => {});
  return {
    child,
    ended,
    answer: () =>
      new Promise((resolve, reject) => {
        child.once("message", resolve);
        void ended.then((signal) =>
          reject(
            new Error(`The child process ended before it answered (${signal ?? child.exitCode}): ${stderr}`),
          ),
        );
      }),
  };
}
