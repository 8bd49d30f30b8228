import "../../components/running/run-output.css";
import "./try-out.css";
import type { ProductDetail } from "@stoa/sdk";
import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type KeyboardEvent, lazy, type ReactNode, useEffect, useRef, useState } from "react";
import { CopyButton } from "../../components/copy-button.tsx";
import { fieldErrors } from "../../components/field.tsx";
import { AlertIcon, InfoIcon, PlayIcon, StopIcon } from "../../components/icons.tsx";
import { Id } from "../../components/id.tsx";
import { Part } from "../../components/part.tsx";
import { OutputText, ViewSwitch } from "../../components/running/output-text.tsx";
import {
  defaultValues,
  findValueErrors,
  sentValues,
  VariableFields,
  type VariableValues,
} from "../../components/running/variable-fields.tsx";
import { formatDuration } from "../../lib/duration.ts";
import { formatCount, formatMoney } from "../../lib/format.ts";
import { describeTryError, type TryProblem } from "../../lib/try-errors.ts";
import { type TryState, useTry } from "../../lib/use-try.ts";
import { productQuery } from "../../queries/market.ts";
import { signInUrl, useAccount } from "../../session.ts";

const Captcha = lazy(() => import("./try-captcha.tsx"));

/** Of the service, for all values of a try together. */
const MOST_CHARACTERS = 8_000;

interface TryFormProps {
  product: ProductDetail;
  tryOut: NonNullable<ProductDetail["tryOut"]>;
}

/** The form of a try, and beside it the answer. */
export default function TryForm({ product, tryOut }: TryFormProps) {
  const { variables } = product;
  const client = useQueryClient();
  const isMember = useAccount() !== null;
  const form = useRef<HTMLFormElement>(null);
  const [values, setValues] = useState(() => defaultValues(variables));
  const [isChecked, check] = useState(false);
  const attempt = useTry(product.id);
  const captcha = useCaptchaToken(isMember ? null : tryOut.captcha);
  const valueErrors = findValueErrors(variables, values);
  const isTooLong = countCharacters(values) > MOST_CHARACTERS;
  const isComplete = Object.keys(valueErrors).length === 0 && !isTooLong && !captcha.isMissing;
  const errors = { ...variableErrors(attempt.error), ...(isChecked && valueErrors) };
  useEffect(() => {
    form.current?.querySelector<HTMLElement>("input, select, textarea, button")?.focus();
  }, []);
  const start = async () => {
    check(!isComplete);
    if (!isComplete) {
      const focusInvalid = () => form.current?.querySelector<HTMLElement>("[aria-invalid]")?.focus();
      return requestAnimationFrame(focusInvalid);
    }
    if (attempt.isRunning) return;
    await attempt.start({ variables: sentValues(variables, values), ...captcha.use() });
    // How many tries are left today.
    void client.invalidateQueries({ queryKey: productQuery(product.id).queryKey, exact: true });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      void start();
    }
    if (event.key === "Escape") attempt.stop();
  };
  const setValue = (name: string, value: string) => setValues((old) => ({ ...old, [name]: value }));
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: shortcuts of the fields and buttons inside
    <div className="panel try-out" onKeyDown={onKeyDown}>
      <form
        className="stack form"
        ref={form}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void start();
        }}
      >
        <VariableFields
          variables={variables}
          values={values}
          errors={errors}
          onChange={setValue}
          isCounted={false}
        />
        {variables.length === 0 && <p className="soft">This prompt asks for nothing.</p>}
        {isTooLong && (
          <p className="ferr" role="alert">
            <AlertIcon /> A try takes {formatCount(MOST_CHARACTERS)} characters in all fields together; these
            are {formatCount(countCharacters(values))}.
          </p>
        )}
        {captcha.widget && (
          <Part>
            <Captcha
              key={captcha.round}
              captcha={captcha.widget}
              onToken={captcha.setToken}
              error={isChecked && captcha.isMissing ? "Solve the captcha, or sign in." : undefined}
            />
          </Part>
        )}
        <div className="row wrap">
          {/* A disabled button would lose the focus, and with it the key that stops. */}
          <button type="submit" className="btn" aria-disabled={attempt.isRunning}>
            <PlayIcon /> {attempt.isRunning ? "Running" : attempt.phase === "ended" ? "Try again" : "Try it"}
          </button>
          <span className="xs faint desk">
            <span className="kbd">Ctrl Enter</span> runs, <span className="kbd">Esc</span> stops
          </span>
        </div>
      </form>
      <div className="try-answer">
        <Answer product={product} attempt={attempt} isMember={isMember} onStop={attempt.stop} />
      </div>
    </div>
  );
}

const countCharacters = (values: VariableValues): number =>
  Object.values(values).reduce((sum, value) => sum + value.length, 0);

function variableErrors(error: unknown): Record<string, string> {
  const prefix = "variables.";
  return Object.fromEntries(
    Object.entries(fieldErrors(error)).flatMap(([field, text]) =>
      field.startsWith(prefix) ? [[field.slice(prefix.length), text]] : [],
    ),
  );
}

/** Each solved captcha is for one try. */
function useCaptchaToken(widget: TryFormProps["tryOut"]["captcha"]) {
  const [token, setToken] = useState<string | null>(null);
  const [round, setRound] = useState(0);
  const use = (): { captcha?: string } => {
    if (token === null) return {};
    setToken(null);
    setRound(round + 1);
    return { captcha: token };
  };
  return { widget, round, setToken, isMissing: widget !== null && token === null, use };
}

interface AnswerProps {
  product: ProductDetail;
  attempt: TryState;
  isMember: boolean;
  onStop: () => void;
}

function Answer({ product, attempt, isMember, onStop }: AnswerProps) {
  const [isSource, showSource] = useState(false);
  const { phase, text, result } = attempt;
  const isRunning = phase === "waiting" || phase === "writing";
  if (phase === "idle")
    return (
      <div className="stack">
        <p className="b">The answer appears here</p>
        <p className="soft">
          Word by word, as the model writes it. Answers that repeat the seller’s prompt are withheld, and long
          ones are cut.
        </p>
      </div>
    );
  return (
    <div className="stack">
      <div className="row between wrap">
        <Status attempt={attempt} />
        {isRunning ? (
          <button type="button" className="btn s danger" onClick={onStop}>
            <StopIcon /> Stop <span className="kbd desk">Esc</span>
          </button>
        ) : (
          text !== "" && (
            <span className="row wrap">
              <ViewSwitch isSource={isSource} onChange={showSource} />
              <CopyButton text={text} />
            </span>
          )
        )}
      </div>
      {(isRunning || text !== "") && (
        <article
          className={isRunning ? "run-output reading is-writing" : "run-output reading"}
          dir="auto"
          aria-busy={isRunning}
          aria-label="Answer"
        >
          {text !== "" && <OutputText text={text} isSource={isSource} />}
        </article>
      )}
      {result && <ResultNotes product={product} result={result} text={text} />}
      {attempt.isStopped && (
        <Note fact="You stopped this try." advice="It counts, because the model had begun." />
      )}
      {attempt.error !== null && !hasFieldErrors(attempt.error) && (
        <Problem product={product} problem={describeTryError(attempt.error, isMember)} />
      )}
    </div>
  );
}

const hasFieldErrors = (error: unknown): boolean => Object.keys(variableErrors(error)).length > 0;

/** Read out when it changes. */
function Status({ attempt: { phase, result, error, isStopped } }: { attempt: TryState }) {
  const words = {
    idle: "",
    waiting: "Waiting for the first words",
    writing: "Writing",
    ended: result
      ? result.withheld
        ? "Withheld"
        : "Done"
      : isStopped
        ? "Stopped"
        : error
          ? "No answer"
          : "",
  };
  const isRunning = phase === "waiting" || phase === "writing";
  return (
    <span className="row sm wrap">
      <span className="row" role="status">
        {isRunning && <span className="run-live" aria-hidden="true" />}
        <span className="m">{words[phase]}</span>
      </span>
      {result && (
        <span className="soft">
          {result.model}, {formatDuration(result.duration)}
        </span>
      )}
    </span>
  );
}

interface ResultNotesProps {
  product: ProductDetail;
  result: NonNullable<TryState["result"]>;
  text: string;
}

function ResultNotes({ product, result, text }: ResultNotesProps) {
  const { withheld, isCut, triesLeft } = result;
  return (
    <>
      {withheld && (
        <Note
          isWarning
          fact="The answer is withheld, because it repeated the seller’s prompt."
          advice="Change what you typed, then try again. This try counts."
        />
      )}
      {!withheld && text === "" && <p className="soft">The model answered with an empty text.</p>}
      {!withheld && isCut && (
        <Note
          fact="The answer reached the limit of a try and was cut."
          advice="Runs of buyers have no such limit."
        />
      )}
      <div className="row wrap between">
        <span className="sm soft">
          {triesLeft === 0
            ? "That was your last try for today."
            : `${formatCount(triesLeft)} ${triesLeft === 1 ? "try" : "tries"} left today`}
        </span>
        <BuyLink product={product} />
      </div>
    </>
  );
}

interface NoteProps {
  fact: string;
  advice: string;
  isWarning?: boolean;
}

const Note = ({ fact, advice, isWarning = false }: NoteProps) => (
  <p className={isWarning ? "strip warning" : "strip"}>
    {isWarning ? <AlertIcon size={20} /> : <InfoIcon size={20} />}
    <span className="grow">
      <b>{fact}</b> {advice}
    </span>
  </p>
);

function Problem({ product, problem }: { product: ProductDetail; problem: TryProblem }) {
  const { fact, advice, next, requestId } = problem;
  const isLimit = next === "buy";
  const actions: Partial<Record<TryProblem["next"], ReactNode>> = {
    buy: <BuyLink product={product} />,
    "sign-in": (
      <a className="btn s" href={signInUrl()}>
        Sign in
      </a>
    ),
  };
  return (
    <div className={isLimit ? "strip warning" : "strip bad"} role="alert">
      <AlertIcon size={20} />
      <div className="grow">
        <b>{fact}</b> {advice}
        {requestId !== null && !isLimit && (
          <div>
            <Id id={requestId} />
          </div>
        )}
      </div>
      {actions[next]}
    </div>
  );
}

const BuyLink = ({ product: { id, price, currency, access } }: { product: ProductDetail }) =>
  !access.owned && (
    <Link to="/checkout/$productId" params={{ productId: id }} className="btn s">
      {price === 0 ? "Get for free" : `Buy for ${formatMoney(price, currency)}`}
    </Link>
  );
