import { Interrupted, UsageError } from "./errors.ts";

/** Whether a person can answer. Without one, a command never waits for an answer. */
export const isInteractive = (): boolean => process.stdin.isTTY === true && process.stderr.isTTY === true;

/** Asks on standard error; standard output is for data. `instead` says how to do without the question. */
async function ask<T>(
  instead: string,
  show: (prompts: typeof import("@clack/prompts")) => Promise<T | symbol>,
): Promise<Exclude<T, symbol>> {
  if (!isInteractive()) throw new UsageError("This needs an answer, and there is no terminal", instead);
  const prompts = await import("@clack/prompts");
  const answer = await show(prompts);
  if (prompts.isCancel(answer)) throw new Interrupted();
  return answer as Exclude<T, symbol>;
}

const streams = { output: process.stderr };

export const confirm = (message: string, instead: string): Promise<boolean> =>
  ask(instead, (prompts) => prompts.confirm({ message, initialValue: false, ...streams }));

/** The answer is not shown. */
export const askSecret = (message: string, instead: string): Promise<string> =>
  ask(instead, (prompts) => prompts.password({ message, mask: "•", ...streams }));

export const askText = (message: string, instead: string, initialValue?: string): Promise<string> =>
  ask(instead, (prompts) =>
    prompts.text({ message, ...streams, ...(initialValue !== undefined && { initialValue }) }),
  );

export const choose = <T extends string>(
  message: string,
  choices: readonly { value: T; label: string }[],
  instead: string,
): Promise<T> =>
  ask(instead, (prompts) =>
    prompts.select({
      message,
      options: choices.map(({ value, label }) => ({ value, label })) as never,
      ...streams,
    }),
  );
