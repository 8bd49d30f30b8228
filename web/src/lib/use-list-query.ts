import {
  hashKey,
  type QueryKey,
  type UseSuspenseQueryOptions,
  useSuspenseQuery,
} from "@tanstack/react-query";
import { useDeferredValue, useMemo } from "react";

/**
 * The list of the present address. While it loads, the rows before stay and `isFetching` is true: a skeleton would take the filters
 * away, and React shows one for 300 ms even when the rows arrive sooner.
 */
export function useListQuery<Data, Key extends QueryKey>(
  options: UseSuspenseQueryOptions<Data, Error, Data, Key>,
): { data: Data; isFetching: boolean } {
  const hash = hashKey(options.queryKey);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key identifies the options, which are new objects at each render
  const present = useMemo(() => options, [hash]);
  const shown = useDeferredValue(present);
  const { data, isFetching } = useSuspenseQuery(shown);
  return { data, isFetching: isFetching || shown !== present };
}
