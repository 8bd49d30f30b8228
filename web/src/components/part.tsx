import { CatchBoundary } from "@tanstack/react-router";
import { type ReactNode, Suspense } from "react";
import { isMissingFile } from "../lib/missing-file.ts";

interface PartProps {
  children: ReactNode;
  /** Until the part has loaded. */
  fallback?: ReactNode;
}

/** A part that loads when it is needed. If its file is missing, the page and what was typed there stay. */
export const Part = ({ children, fallback }: PartProps) => (
  <CatchBoundary getResetKey={() => 0} errorComponent={MissingPart}>
    <Suspense fallback={fallback}>{children}</Suspense>
  </CatchBoundary>
);

function MissingPart({ error }: { error: unknown }) {
  if (!isMissingFile(error)) throw error;
  return (
    <span className="row wrap" role="alert">
      A part of this page did not load.
      <button type="button" className="btn s" onClick={() => location.reload()}>
        Reload the page
      </button>
    </span>
  );
}
