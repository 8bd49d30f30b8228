import { ApiError } from "@stoa/sdk";
import { type ReactNode, useEffect, useId, useRef } from "react";
import { AlertIcon } from "./icons.tsx";

/** What a control inside a field takes over: its id, and what describes it to screen readers. */
export interface ControlProps {
  id: string;
  "aria-describedby"?: string;
  "aria-invalid"?: true;
}

interface FieldProps {
  label: ReactNode;
  hint?: ReactNode;
  /** The sentence under the control; the control's text stays. */
  error?: string | undefined;
  children: (control: ControlProps) => ReactNode;
}

/** A control with its label, and below it a hint and an error: `<Field label="Name">{(control) => <input className="input" {...control} />}</Field>`. */
export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId();
  const descriptions = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  const control: ControlProps = {
    id,
    ...(descriptions !== "" && { "aria-describedby": descriptions }),
    ...(error !== undefined && { "aria-invalid": true }),
  };
  return (
    <div className="field">
      <label htmlFor={id} className="m">
        {label}
      </label>
      {children(control)}
      {hint && (
        <p className="sm soft" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {error !== undefined && (
        <p className="ferr" id={`${id}-error`}>
          <AlertIcon /> {error}
        </p>
      )}
    </div>
  );
}

/** The API says "must be a number": the field's name would stand before it. */
const toSentence = (reason: string): string =>
  `${reason.charAt(0).toUpperCase()}${reason.slice(1)}${/[.!?]$/.test(reason) ? "" : "."}`;

/** The sentences of an API error by the field that each names, such as `{ "address.zip": "is required" }`. */
export function fieldErrors(error: unknown): Record<string, string> {
  if (!(error instanceof ApiError)) return {};
  const { field, reason, errors } = error.details;
  if (errors) return Object.fromEntries(errors.map(({ field, reason }) => [field, toSentence(reason)]));
  return field === undefined ? {} : { [field]: toSentence(reason ?? error.message) };
}

/** What stopped a form from being sent, above it. It takes the focus, so that everyone notices. */
export function ErrorSummary({ error, title }: { error: unknown; title: string }) {
  const summary = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (error) summary.current?.focus();
  }, [error]);
  if (!error) return null;
  const sentences = Object.entries(fieldErrors(error));
  const { message, requestId = null } = error as { message: string; requestId?: string | null };
  return (
    <div className="error-summary" role="alert" tabIndex={-1} ref={summary}>
      <b>{title}</b>
      {sentences.length === 0 && <p>{message}</p>}
      <ul>
        {sentences.map(([field, sentence]) => (
          <li key={field}>
            <code>{field}</code> {sentence}
          </li>
        ))}
      </ul>
      {requestId !== null && <p className="mono soft">{requestId}</p>}
    </div>
  );
}
