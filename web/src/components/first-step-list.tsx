import { Link } from "@tanstack/react-router";
import type { Step } from "../lib/first-steps.ts";
import { CheckIcon } from "./icons.tsx";

/** The items of a list of first steps; the next one has a link. */
export function FirstStepList({ steps, isMember = true }: { steps: Step[]; isMember?: boolean }) {
  const next = steps.find(({ isDone }) => !isDone);
  return steps.map((step) => (
    <li key={step.title} className={step.isDone ? "done" : ""}>
      <b className="row">
        {step.isDone && <CheckIcon />} {step.title}
        {step.isDone && <span className="hidden">, done</span>}
      </b>
      <p className="soft">{step.text}</p>
      {isMember && step === next && (
        <Link to={step.to} className="btn s">
          {step.title}
        </Link>
      )}
    </li>
  ));
}
