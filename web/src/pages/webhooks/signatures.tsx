import "./webhooks.css";
import "./signatures.css";
import type { WebhookDeliveryDetail } from "@stoa/sdk";
import { sign } from "@stoa/sdk/webhooks";
import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { Field } from "../../components/field.tsx";
import { AlertIcon, CheckIcon, ClockIcon } from "../../components/icons.tsx";
import { type Delivery, type Diagnosis, diagnoseSignature, type Step } from "../../lib/diagnose-signature.ts";
import { EVENT_TYPES } from "../../lib/event-types.ts";
import { useTitle } from "../../lib/use-title.ts";
import { deliveryQuery } from "../../queries/webhooks.ts";

const route = getRouteApi("/webhooks-shell/settings/signatures");

export default function Signatures() {
  const { delivery } = route.useSearch();
  useTitle("Signature debugger");
  return (
    <main className="work" id="content">
      <h1 className="page-title">Signature debugger</h1>
      <p className="soft sm intro">
        Paste a delivery as your server got it, and the secret that your server uses. It is checked here in
        your browser: the secret is sent nowhere and is gone when you leave.
      </p>
      {delivery === undefined ? <Debugger initial={EMPTY} /> : <DebuggerOfDelivery deliveryId={delivery} />}
    </main>
  );
}

const EMPTY: Delivery = { headers: "", body: "", secret: "" };

function DebuggerOfDelivery({ deliveryId }: { deliveryId: string }) {
  const { attempt } = route.useSearch();
  const { data } = useSuspenseQuery(deliveryQuery(deliveryId));
  return <Debugger key={`${deliveryId} ${attempt}`} initial={deliveryOf(data, attempt)} />;
}

function deliveryOf({ attempts }: WebhookDeliveryDetail, n: number | undefined): Delivery {
  const request = (attempts.find((attempt) => attempt.n === n) ?? attempts.at(-1))?.request;
  if (!request) return EMPTY;
  const headers = Object.entries(request.headers).map(([name, value]) => `${name.toLowerCase()}: ${value}`);
  return { headers: headers.join("\n"), body: request.body, secret: "" };
}

function Debugger({ initial }: { initial: Delivery }) {
  const [delivery, setDelivery] = useState(initial);
  const diagnosis = useDiagnosis(delivery);
  const change = (part: Partial<Delivery>) => setDelivery((old) => ({ ...old, ...part }));
  return (
    <div className="debugger">
      <form className="stack" onSubmit={(event) => event.preventDefault()} autoComplete="off">
        <Field label="Secret" hint="The signing secret of the webhook, from whsec_ to its last character.">
          {(control) => (
            <input
              {...control}
              className="input mono"
              autoComplete="off"
              spellCheck={false}
              value={delivery.secret}
              onChange={(event) => change({ secret: event.target.value })}
            />
          )}
        </Field>
        <Field label="Headers" hint="One per line. You can paste all headers of the delivery.">
          {(control) => (
            <textarea
              {...control}
              className="input mono"
              rows={6}
              spellCheck={false}
              placeholder={"webhook-id: evt_…\nwebhook-timestamp: 1795343204\nwebhook-signature: v1,…"}
              value={delivery.headers}
              onChange={(event) => change({ headers: event.target.value })}
            />
          )}
        </Field>
        <Field label="Body" hint="The raw text, before any parser.">
          {(control) => (
            <textarea
              {...control}
              className="input mono"
              rows={10}
              spellCheck={false}
              value={delivery.body}
              onChange={(event) => change({ body: event.target.value })}
            />
          )}
        </Field>
        <div className="row wrap">
          <button type="button" className="btn s" onClick={() => void createExample().then(setDelivery)}>
            Fill in an example
          </button>
          <button type="button" className="btn s" onClick={() => setDelivery(EMPTY)}>
            Clear
          </button>
        </div>
      </form>
      <section className="beam thin" aria-label="Result">
        {diagnosis ? (
          <Result diagnosis={diagnosis} />
        ) : (
          <>
            <h2 className="h3">What it finds</h2>
            <ul className="bullets soft">
              <li>A wrong, cut, quoted or encoded secret</li>
              <li>A body that was parsed and written again</li>
              <li>A timestamp that is too old, and clocks that are wrong</li>
              <li>Headers that are missing or were changed</li>
            </ul>
          </>
        )}
      </section>
    </div>
  );
}

/** null: nothing to check yet. */
function useDiagnosis(delivery: Delivery): Diagnosis | null {
  const [diagnosis, setDiagnosis] = useState<Diagnosis | null>(null);
  const { headers, body, secret } = delivery;
  useEffect(() => {
    let isCurrent = true;
    if (headers.trim() === "" || secret === "") {
      setDiagnosis(null);
      return;
    }
    void diagnoseSignature({ headers, body, secret }, Date.now()).then((found) => {
      if (isCurrent) setDiagnosis(found);
    });
    return () => {
      isCurrent = false;
    };
  }, [headers, body, secret]);
  return diagnosis;
}

/** With a new secret, so that it can be changed and broken at will. */
async function createExample(): Promise<Delivery> {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  const secret = `whsec_${btoa(String.fromCharCode(...bytes))}`;
  const body = JSON.stringify(EVENT_TYPES[0]?.sample);
  const headers = Object.entries(await sign(body, secret)).map(([name, value]) => `${name}: ${value}`);
  return { headers: headers.join("\n"), body, secret };
}

function Result({ diagnosis: { isValid, verdict, advice, steps } }: { diagnosis: Diagnosis }) {
  return (
    <>
      <div className={isValid ? "strip good" : "strip bad"} role="status">
        {isValid ? <CheckIcon size={20} /> : <AlertIcon size={20} />}
        <div className="grow">
          <strong>{verdict}</strong> {advice}
        </div>
      </div>
      <h2 className="h3 steps-title">Step by step</h2>
      <ol className="steps">
        {steps.map((step) => (
          <StepItem key={step.name} step={step} />
        ))}
      </ol>
    </>
  );
}

const ICONS = {
  good: <CheckIcon className="good" />,
  bad: <AlertIcon className="bad" />,
  warning: <AlertIcon className="warning" />,
  skipped: <ClockIcon className="faint" />,
};

const StepItem = ({ step: { name, state, text, detail } }: { step: Step }) => (
  <li>
    {ICONS[state]}
    <div className="stack tight">
      <span>
        <span className="m">{name}.</span> {text}
      </span>
      {detail !== undefined && <pre className="codeblock wrap">{showWhiteSpace(detail)}</pre>}
    </div>
  </li>
);

/** Line breaks and tabs change a signature as letters do. */
const showWhiteSpace = (text: string) =>
  text.replaceAll("\r", "␍").replaceAll("\n", "␊\n").replaceAll("\t", "␉");
