import { useNavigate } from "@tanstack/react-router";

/** Changes filters of a list in its address and leads to its first page. */
export function useSearchChange(): (changes: Record<string, string | number | true | undefined>) => void {
  const navigate = useNavigate();
  return (changes) =>
    void navigate({
      to: ".",
      search: ((old: object) => ({ ...old, page: undefined, ...changes })) as never,
      resetScroll: false,
    });
}
