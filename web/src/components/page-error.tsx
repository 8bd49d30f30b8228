import { ApiError } from "@stoa/sdk";
import { Link, useRouter } from "@tanstack/react-router";
import { lazy } from "react";
import { describeError, statusOf } from "../lib/errors.ts";
import { useTitle } from "../lib/use-title.ts";
import { AlertIcon } from "./icons.tsx";
import { Part } from "./part.tsx";

const NeedsTwoFactor = lazy(() => import("./administration/needs-two-factor.tsx"));

/** An administrator whose session lacks the second factor. */
const needsTwoFactor = (error: unknown): boolean =>
  error instanceof ApiError && error.details["required"] === "two-factor";

export function NotFound() {
  useTitle("Page not found");
  return (
    <main className="page narrow" id="content">
      <h1 className="title">This page does not exist</h1>
      <p className="soft lead">The address may be mistyped, or what was here is no longer public.</p>
      <p className="row wrap">
        <Link to="/search" className="btn">
          Search products
        </Link>
        <Link to="/" className="link">
          Home
        </Link>
      </p>
    </main>
  );
}

export function PageError({ error }: { error: unknown }) {
  if (statusOf(error) === 404) return <NotFound />;
  if (needsTwoFactor(error))
    return (
      <Part>
        <NeedsTwoFactor />
      </Part>
    );
  return <FailedPage error={error} />;
}

function FailedPage({ error }: { error: unknown }) {
  useTitle("This page did not load");
  const router = useRouter();
  return (
    <main className="page narrow" id="content">
      <h1 className="page-title">This page did not load</h1>
      <ErrorStrip error={error} onRetry={() => router.invalidate()} />
    </main>
  );
}

/** An error inside a page: what happened, what to do, and the id of the request. */
export function ErrorStrip({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const { text, requestId } = describeError(error);
  return (
    <div className="strip bad" role="alert">
      <AlertIcon size={20} />
      <div className="grow">
        {text}
        {requestId !== null && <div className="mono soft">{requestId}</div>}
      </div>
      {onRetry && (
        <button type="button" className="btn s" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** In place of a part of a page that has a route of its own. */
export function PaneError({ error }: { error: unknown }) {
  const router = useRouter();
  return <ErrorStrip error={error} onRetry={() => void router.invalidate()} />;
}
