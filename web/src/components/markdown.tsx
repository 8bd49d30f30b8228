import { CatchBoundary } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { isCostly } from "../lib/markdown-cost.ts";

const Rendered = lazy(() => import("./rendered-markdown.tsx"));
/** Text without any of these is the same with and without Markdown. */
const MARKUP = /[*_`#>[\]|~\\<&]|^\s*(?:[-+]|\d+\.)\s|https?:|\n/m;

/**
 * Foreign text in Markdown, without scripts, styles and foreign images. Its source stands there until the renderer has loaded, and if
 * the renderer fails or would block the page.
 */
export function Markdown({ text }: { text: string }) {
  const plain = <p className="preserve-lines">{text}</p>;
  if (!MARKUP.test(text) || isCostly(text)) return plain;
  return (
    <CatchBoundary getResetKey={() => text.length} errorComponent={() => plain}>
      <Suspense fallback={plain}>
        <Rendered text={text} />
      </Suspense>
    </CatchBoundary>
  );
}
