import { type KeyboardEvent, type ReactNode, useId, useLayoutEffect, useMemo, useRef, useState } from "react";
import { describe, type Suggestion, suggestAt } from "../../lib/suggest-expression.ts";
import type { FieldPath } from "../../lib/workflow-document.ts";
import { problemAt } from "../../lib/workflow-problems.ts";
import { AlertIcon } from "../icons.tsx";
import { fieldName } from "./edited-field.tsx";
import { useEditor } from "./editor-context.ts";
import { useExpressionNames } from "./use-expression-names.ts";

interface ExpressionFieldProps {
  /** null: the result of the workflow. */
  stepId: string | null;
  path: FieldPath;
  label: ReactNode;
  value: unknown;
  /** Whether an empty expression removes the field. */
  isOptional?: boolean;
  onChange: (expression: string | undefined) => void;
}

const MAX_VALUE = 160;

/** CEL with suggestions, and below it the value in the shown run, or what is wrong. */
export function ExpressionField(props: ExpressionFieldProps) {
  const { stepId, path, label, value, isOptional = false, onChange } = props;
  const { problems, values, run } = useEditor();
  const id = useId();
  const problem = problemAt(problems, stepId, path);
  const known = values.get(asField(path));
  const completion = useCompletion(stepId, path[0] === "do", value, onChange);
  const { input, items, active, setActive, choose, onKeyDown, onCaret, close } = completion;
  const text = typeof value === "string" ? value : "";
  const isOpen = items.length > 0;
  return (
    <div className="field" data-field={fieldName(path)}>
      <div className="row between">
        <label htmlFor={id} className="m">
          {label} {isOptional && <span className="faint">optional</span>}
        </label>
        {known && known.error === null && run && (
          <span className="xs faint">{describe(known.value)}, from the last run</span>
        )}
      </div>
      <div className={`workflow-expression${problem ? " is-bad" : ""}`}>
        <div>
          <span className="faint" aria-hidden="true">
            =
          </span>
          <textarea
            ref={input}
            id={id}
            rows={Math.min(6, text.split("\n").length + Math.floor(text.length / 44))}
            spellCheck={false}
            autoComplete="off"
            role="combobox"
            aria-autocomplete="list"
            aria-expanded={isOpen}
            aria-controls={`${id}-list`}
            aria-activedescendant={isOpen ? `${id}-${active}` : undefined}
            aria-invalid={problem ? true : undefined}
            aria-describedby={problem || known ? `${id}-value` : undefined}
            value={text}
            onChange={({ target }) => {
              onChange(target.value === "" && isOptional ? undefined : target.value);
              onCaret(target.selectionStart);
            }}
            onKeyDown={onKeyDown}
            onBlur={close}
          />
        </div>
        {problem ? (
          <p id={`${id}-value`} className="bad">
            <AlertIcon /> {problem.sentence}
          </p>
        ) : (
          known && (
            <p id={`${id}-value`} className={known.error === null ? "" : "warning"}>
              <span aria-hidden="true">↳</span>
              {known.error === null ? shorten(known.value) : `In the last run it ${known.error}.`}
            </p>
          )
        )}
      </div>
      <div
        id={`${id}-list`}
        role="listbox"
        aria-label="Suggestions"
        className="workflow-suggestions"
        hidden={!isOpen}
      >
        {items.map((item, at) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field above has the keys of the list
          // biome-ignore lint/a11y/useFocusableInteractive: the field above keeps the focus
          <div
            key={item.label}
            id={`${id}-${at}`}
            role="option"
            aria-selected={at === active}
            onMouseDown={(event) => event.preventDefault()}
            onMouseEnter={() => setActive(at)}
            onClick={() => choose(item)}
          >
            <span>{item.label}</span>
            <span>{item.detail}</span>
          </div>
        ))}
      </div>
    </div>
  );
}

/** As the service writes a path: `messages[0].content`. */
const asField = (path: FieldPath): string =>
  path.reduce<string>(
    (text, part) => (typeof part === "number" ? `${text}[${part}]` : text ? `${text}.${part}` : part),
    "",
  );

function shorten(value: unknown): string {
  const text = JSON.stringify(value) ?? "";
  return text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)}…` : text;
}

function useCompletion(
  stepId: string | null,
  inMap: boolean,
  value: unknown,
  onChange: (expression: string) => void,
) {
  const input = useRef<HTMLTextAreaElement>(null);
  const names = useExpressionNames(stepId, inMap);
  /** null: nothing was typed since the list was closed. */
  const [caret, setCaret] = useState<number | null>(null);
  const [active, setActive] = useState(0);
  /** Where the caret goes when the chosen name is in the text. A frame later, it would move within what was typed meanwhile. */
  const caretAfterChoice = useRef<number | null>(null);
  useLayoutEffect(() => {
    const at = caretAfterChoice.current;
    caretAfterChoice.current = null;
    if (at !== null) input.current?.setSelectionRange(at, at);
  });
  const text = typeof value === "string" ? value : "";
  const { from, items } = useMemo(
    () => (caret === null ? NOTHING : suggestAt(text, caret, names)),
    [caret, text, names],
  );
  const choose = ({ insert }: Suggestion) => {
    const end = from + insert.length;
    onChange(text.slice(0, from) + insert + text.slice(caret ?? text.length));
    setCaret(insert.endsWith(".") ? end : null);
    setActive(0);
    caretAfterChoice.current = end;
  };
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      setCaret(event.currentTarget.selectionStart);
      return;
    }
    if (items.length === 0) return;
    const chosen = items[active];
    const moves: Record<string, () => void> = {
      ArrowDown: () => setActive((active + 1) % items.length),
      ArrowUp: () => setActive((active + items.length - 1) % items.length),
      Enter: () => chosen && choose(chosen),
      Tab: () => chosen && choose(chosen),
      Escape: () => setCaret(null),
    };
    const move = event.shiftKey ? undefined : moves[event.key];
    if (!move) return;
    event.preventDefault();
    event.stopPropagation();
    move();
  };
  const onCaret = (at: number) => {
    setCaret(at);
    setActive(0);
  };
  return { input, items, active, setActive, choose, onKeyDown, onCaret, close: () => setCaret(null) };
}

const NOTHING: ReturnType<typeof suggestAt> = { from: 0, items: [] };
