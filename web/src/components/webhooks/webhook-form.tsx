import type { AccountEventType, CreateWebhookEndpoint } from "@stoa/sdk";
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { initialData } from "../../initial-data.ts";
import { takeDraft } from "../../lib/drafts.ts";
import { EVENT_TYPES } from "../../lib/event-types.ts";
import { newInboxUrl } from "../../lib/webhooks.ts";
import { egressQuery } from "../../queries/webhooks.ts";
import { CheckRow } from "../check-row.tsx";
import { Field, fieldErrors } from "../field.tsx";
import { FormError } from "../form-error.tsx";
import { JsonText } from "../json-text.tsx";
import { ShowAsCode } from "../show-as-code.tsx";

/** What the form edits. */
export type WebhookInput = Pick<
  Required<CreateWebhookEndpoint>,
  "url" | "description" | "eventTypes" | "signatureContent" | "signaturePrefix"
>;

interface WebhookFormProps {
  initial: WebhookInput;
  /** The name under which the input stays while its author signs in again. */
  draft: string;
  submitLabel: string;
  isPending: boolean;
  error: unknown;
  onSubmit: (input: WebhookInput) => void;
  codeOf: (input: WebhookInput) => { curl: string; sdk: string };
  /** Beside the button that submits. */
  children?: ReactNode;
}

export function WebhookForm(props: WebhookFormProps) {
  const { initial, draft, submitLabel, isPending, error, onSubmit, codeOf, children } = props;
  const [input, setInput] = useState(() => takeDraft<WebhookInput>(draft) ?? initial);
  const [missing, setMissing] = useState<string | undefined>();
  const change = (part: Partial<WebhookInput>) => setInput((old) => ({ ...old, ...part }));
  const errors = fieldErrors(error);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (isPending) return;
    const hasNoType = input.eventTypes?.length === 0;
    setMissing(hasNoType ? "Choose at least one event type, or all." : undefined);
    if (!hasNoType) onSubmit({ ...input, url: input.url.trim() });
  };
  return (
    <form onSubmit={submit} className="webhook-form">
      <FormError error={error} title="The webhook was not saved" draft={{ name: draft, value: input }} />
      <div className="fields">
        <UrlField url={input.url} error={errors["url"]} onChange={(url) => change({ url })} />
        <Field label="Description" hint="For you, such as shop-backend." error={errors["description"]}>
          {(control) => (
            <input
              {...control}
              className="input"
              dir="auto"
              maxLength={200}
              value={input.description}
              onChange={(event) => change({ description: event.target.value })}
            />
          )}
        </Field>
      </div>
      <TypePicker
        chosen={input.eventTypes}
        error={missing ?? errors["eventTypes"]}
        onChange={(eventTypes) => change({ eventTypes })}
      />
      <SignatureOptions input={input} onChange={change} />
      <div className="row wrap">
        <button type="submit" className="btn primary" disabled={isPending}>
          {submitLabel}
        </button>
        {children}
        <ShowAsCode {...codeOf(input)} />
      </div>
    </form>
  );
}

interface UrlFieldProps {
  url: string;
  error: string | undefined;
  onChange: (url: string) => void;
}

function UrlField({ url, error, onChange }: UrlFieldProps) {
  const { data: addresses = [] } = useQuery(egressQuery);
  const isTest = initialData.environment === "test";
  const from = addresses.length > 0 && ` Deliveries come from ${addresses.join(", ")}.`;
  return (
    <Field
      label="Endpoint URL"
      hint={
        <>
          {isTest
            ? "https, or http to addresses that this test environment allows."
            : "A public https address."}
          {from}
        </>
      }
      error={error}
    >
      {(control) => (
        <div className="row wrap">
          <input
            {...control}
            className="input mono grow url-input"
            inputMode="url"
            autoComplete="off"
            spellCheck={false}
            required
            maxLength={2_048}
            placeholder="https://example.com/hooks"
            value={url}
            onChange={(event) => onChange(event.target.value)}
          />
          {isTest && (
            <button type="button" className="btn" onClick={() => onChange(newInboxUrl())}>
              Use the built-in inbox
            </button>
          )}
        </div>
      )}
    </Field>
  );
}

interface TypePickerProps {
  /** null: all. */
  chosen: AccountEventType[] | null;
  error: string | undefined;
  onChange: (chosen: AccountEventType[] | null) => void;
}

/** `test` cannot be chosen: it comes when it is asked for. */
const CHOICES = EVENT_TYPES.filter(({ type }) => type !== "test");

function TypePicker({ chosen, error, onChange }: TypePickerProps) {
  const [shown, show] = useState(CHOICES[0]?.type ?? "test");
  const sample = EVENT_TYPES.find(({ type }) => type === shown)?.sample;
  const toggle = (type: AccountEventType) => {
    show(type as typeof shown);
    const others = (chosen ?? []).filter((each) => each !== type);
    onChange(others.length === (chosen ?? []).length ? [...others, type] : others);
  };
  return (
    <fieldset className="beam thin picker" aria-describedby={error ? "types-error" : undefined}>
      <legend>
        <h2 className="h3">Events</h2>
      </legend>
      <div className="row wrap mode">
        <label className="row">
          <input
            type="radio"
            className="radio"
            name="events"
            checked={chosen === null}
            onChange={() => onChange(null)}
          />
          All events, also those of later versions
        </label>
        <label className="row">
          <input
            type="radio"
            className="radio"
            name="events"
            checked={chosen !== null}
            onChange={() => onChange([])}
          />
          Only these
        </label>
      </div>
      <div className="cols">
        <ul className="types">
          {CHOICES.map(({ type, description }) => (
            <li key={type} className={type === shown ? "on" : ""}>
              <label>
                <input
                  type="checkbox"
                  className="check"
                  disabled={chosen === null}
                  checked={chosen === null || chosen.includes(type)}
                  onChange={() => toggle(type)}
                />
                <span className="stack tight">
                  <span className="m">{withBreaks(type)}</span>
                  <span className="sm soft">{description}</span>
                </span>
              </label>
              <button
                type="button"
                className="btn quiet s"
                aria-pressed={type === shown}
                aria-label={`Sample of ${type}`}
                onClick={() => show(type)}
              >
                Sample
              </button>
            </li>
          ))}
        </ul>
        <div className="stack sample">
          <p className="label">Sample payload of {shown}</p>
          <JsonText text={JSON.stringify(sample)} />
        </div>
      </div>
      {error !== undefined && (
        <p className="ferr" id="types-error" role="alert">
          {error}
        </p>
      )}
    </fieldset>
  );
}

/** A long type wraps after its dots. */
const withBreaks = (type: string): ReactNode[] =>
  type.split(/(?<=\.)/).flatMap((part, at) => (at === 0 ? [part] : [<wbr key={part} />, part]));

interface SignatureOptionsProps {
  input: WebhookInput;
  onChange: (part: Partial<WebhookInput>) => void;
}

const SignatureOptions = ({ input, onChange }: SignatureOptionsProps) => (
  <details className="beam thin" open={input.signatureContent === "body" || input.signaturePrefix}>
    <summary>
      <h2 className="h3">Signature for older receivers</h2>
    </summary>
    <div className="stack">
      <p className="sm soft">
        Each delivery has the headers of Standard Webhooks: webhook-id, webhook-timestamp and
        webhook-signature. These options change only X-Service-Signature.
      </p>
      <CheckRow
        isChecked={input.signatureContent === "body"}
        onChange={(isOn) => onChange({ signatureContent: isOn ? "body" : "timestamp_body" })}
      >
        Sign the body alone, without the timestamp: anyone who saw a delivery can send it again
      </CheckRow>
      <CheckRow
        isChecked={input.signaturePrefix}
        onChange={(signaturePrefix) => onChange({ signaturePrefix })}
      >
        Begin with <code>sha256=</code>
      </CheckRow>
    </div>
  </details>
);
