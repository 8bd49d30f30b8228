import { useNavigate } from "@tanstack/react-router";

/** Changes filters in the address of the present list, which then shows its first page. */
export function useFilters(): (changes: Record<string, string | undefined>) => void {
  const navigate = useNavigate();
  return (changes) =>
    void navigate({
      to: ".",
      search: ((old: object) => ({ ...old, page: undefined, ...changes })) as never,
      resetScroll: false,
    });
}
