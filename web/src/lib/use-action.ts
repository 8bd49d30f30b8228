import { StoaError } from "@stoa/sdk";
import { type UseMutationOptions, type UseMutationResult, useMutation } from "@tanstack/react-query";
import { useRef } from "react";

interface ActionOptions<Result, Input> extends Omit<UseMutationOptions<Result, Error, Input>, "mutationFn"> {
  /** The key belongs to the input: all that the request sends and that people can change must be in it. */
  run: (input: Input, idempotencyKey: string) => Promise<Result>;
}

type Action<Result, Input> = UseMutationResult<Result, Error, Input> & { start: (input: Input) => void };

/**
 * A mutation that a person starts by a click and that must not happen twice. `start` does nothing while it runs: `isPending` is set too
 * late for the second half of a double click. A repeat after a lost connection sends the same idempotency key.
 */
export function useAction<Result, Input = void>({
  run,
  ...options
}: ActionOptions<Result, Input>): Action<Result, Input> {
  const isRunning = useRef(false);
  const intent = useRef<{ key: string; content: string } | null>(null);
  const mutation = useMutation({
    ...options,
    mutationFn: async (input: Input): Promise<Result> => {
      const content = JSON.stringify(input ?? null);
      if (intent.current?.content !== content) intent.current = { key: crypto.randomUUID(), content };
      try {
        const result = await run(input, intent.current.key);
        intent.current = null;
        return result;
      } catch (error) {
        if (!(error instanceof StoaError && error.isRetryable)) intent.current = null;
        throw error;
      }
    },
  });
  const start = async (input: Input) => {
    if (isRunning.current) return;
    isRunning.current = true;
    try {
      await mutation.mutateAsync(input);
    } catch {
      // `error` has it.
    } finally {
      isRunning.current = false;
    }
  };
  return { ...mutation, start: (input) => void start(input) };
}
