import "./first-steps.css";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { FirstStepList } from "../../components/first-step-list.tsx";
import { CloseIcon } from "../../components/icons.tsx";
import { NOTHING_DONE, progressQuery, ROLE_LABELS, ROLES, type Role, STEPS } from "../../lib/first-steps.ts";
import { signInUrl, useAccount } from "../../session.ts";

const HIDDEN = "stoa.first-steps-hidden";

function isListHidden(): boolean {
  try {
    return localStorage.getItem(HIDDEN) !== null;
  } catch {
    return false;
  }
}

/** What to do first, on the home page: of a member until all is done or the list is closed, of visitors in a test shop. */
export function FirstSteps() {
  const account = useAccount();
  const [role, setRole] = useState<Role>("buyer");
  const [isHidden, hide] = useState(isListHidden);
  const { data: progress = NOTHING_DONE, isPending } = useQuery({
    ...progressQuery,
    enabled: account !== null && !isHidden,
  });
  if (isHidden) return null;
  // Of its usual height, so that nothing moves when it is known what is done.
  if (account !== null && isPending) return <section className="beam first-steps pending" />;
  if (ROLES.every((role) => STEPS[role](progress).every(({ isDone }) => isDone))) return null;
  const steps = STEPS[role](progress);
  const close = () => {
    hide(true);
    try {
      localStorage.setItem(HIDDEN, "1");
    } catch {
      // Forbidden by the browser: then only this page hides it.
    }
  };
  return (
    <section className="beam first-steps" aria-label="First steps">
      <div className="row between wrap">
        <h2>First steps</h2>
        <span className="row">
          <span className="seg s">
            {ROLES.map((name) => (
              <button key={name} type="button" aria-pressed={role === name} onClick={() => setRole(name)}>
                {ROLE_LABELS[name]}
              </button>
            ))}
          </span>
          <button type="button" className="iconb" aria-label="Hide the first steps" onClick={close}>
            <CloseIcon />
          </button>
        </span>
      </div>
      <ol>
        {account === null && (
          <li>
            <b>Sign in</b>
            <p className="soft">An email address is enough.</p>
            <a href={signInUrl()} className="btn s">
              Sign in
            </a>
          </li>
        )}
        <FirstStepList steps={steps} isMember={account !== null} />
      </ol>
    </section>
  );
}
