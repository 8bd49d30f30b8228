import { type ReactNode, useEffect, useRef } from "react";
import { ChevronIcon } from "./icons.tsx";

/** Of a pane that stands in the place of its list on small screens. There it takes the focus, since the row that had it is hidden. */
export function PaneBack({ children }: { children: ReactNode }) {
  const place = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    const element = place.current;
    if (element && element.offsetParent !== null) element.closest("a")?.focus({ preventScroll: true });
  }, []);
  return (
    <>
      <span ref={place} className="row">
        <ChevronIcon className="flip" />
      </span>
      {children}
    </>
  );
}
