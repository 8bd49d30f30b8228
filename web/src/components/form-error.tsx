import { ApiError } from "@stoa/sdk";
import { saveDraft } from "../lib/drafts.ts";
import { isSignedOut } from "../lib/errors.ts";
import { signInUrl } from "../session.ts";
import { ErrorSummary } from "./field.tsx";
import { ShieldIcon } from "./icons.tsx";

const needsFreshSignIn = (error: unknown): boolean =>
  error instanceof ApiError && error.details["required"] === "fresh-sign-in";

interface FormErrorProps {
  error: unknown;
  /** "The key was not created" */
  title: string;
  /** What to keep while the person signs in again. The page takes it back with takeDraft(). */
  draft?: { name: string; value: unknown };
}

/** Why a form was refused: with the way to sign in again if the session ended or is too old for this, else with the fields to correct. */
export function FormError({ error, title, draft }: FormErrorProps) {
  const isTooOld = needsFreshSignIn(error);
  if (!isTooOld && !isSignedOut(error)) return <ErrorSummary error={error} title={title} />;
  return (
    <div className="strip warning" role="alert">
      <ShieldIcon size={20} />
      <span className="grow">
        <b>{isTooOld ? "Sign in again to continue." : "Your session ended."}</b>{" "}
        {isTooOld && "This needs a sign-in of the last 15 minutes. "}
        {draft && "What you typed is kept."}
      </span>
      <a className="btn s" href={signInUrl()} onClick={() => draft && saveDraft(draft.name, draft.value)}>
        Sign in
      </a>
    </div>
  );
}
