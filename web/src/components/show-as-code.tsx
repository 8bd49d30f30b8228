import { lazy, type MouseEvent, useState } from "react";
import { CodeIcon } from "./icons.tsx";
import { Part } from "./part.tsx";

const Popover = lazy(() => import("./show-as-code-popover.tsx"));

/** Shows the request behind what the page shows or does, for people who automate it. The key is a placeholder. */
export function ShowAsCode(code: { curl: string; sdk: string }) {
  // Above a modal dialog only its own content is seen.
  const [container, setContainer] = useState<HTMLElement | null>(null);
  const open = ({ currentTarget }: MouseEvent) =>
    setContainer(currentTarget.closest("dialog") ?? document.body);
  const closed = (
    <button type="button" className="btn quiet s" onClick={open}>
      <CodeIcon /> Show as code
    </button>
  );
  if (!container) return closed;
  return (
    <Part fallback={closed}>
      <Popover {...code} container={container} />
    </Part>
  );
}
