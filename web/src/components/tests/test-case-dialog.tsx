import type { ProductDetail, TestCaseInput } from "@stoa/sdk";
import { type FormEvent, useState } from "react";
import { CheckRow } from "../check-row.tsx";
import { Dialog, DialogButtons } from "../dialog.tsx";
import { Field, fieldErrors } from "../field.tsx";
import { FormError } from "../form-error.tsx";
import { PlusIcon } from "../icons.tsx";
import { inputErrors } from "../running/schema-fields.tsx";
import { CaseInputFields, useCaseInputs } from "./case-inputs.tsx";
import { ASSERTION_KINDS, type AssertionRow, kindOf, NEW_ROW, toAssertion, toRow } from "./test-cases.ts";

interface TestCaseDialogProps {
  product: ProductDetail;
  testCase: TestCaseInput;
  isNew: boolean;
  /** Of the last save. */
  error: unknown;
  isPending: boolean;
  /** The place of the case in the request, which errors name. */
  position: number;
  onSave: (testCase: TestCaseInput) => void;
  onClose: () => void;
}

/** A row as text, or what the form cannot edit and sends back as it is. */
type EditedAssertion = { id: number } & ({ row: AssertionRow } | { fixed: TestCaseInput["assert"][number] });

let lastId = 0;
const withId = (row: AssertionRow): EditedAssertion => ({ id: ++lastId, row });

export function TestCaseDialog(props: TestCaseDialogProps) {
  const { product, testCase, isNew, error, isPending, position, onSave, onClose } = props;
  const [title, setTitle] = useState(testCase.title);
  const [isHidden, setHidden] = useState(testCase.isHidden ?? false);
  const inputs = useCaseInputs(product, testCase);
  const [invalid, setInvalid] = useState<Record<string, string>>({});
  const [assertions, setAssertions] = useState<EditedAssertion[]>(() =>
    testCase.assert.length === 0 ? [withId(NEW_ROW)] : testCase.assert.map(toEdited),
  );
  const [syntaxError, setSyntaxError] = useState<{ id: number; text: string } | null>(null);
  const errors = fieldErrors(error);
  const place = `cases[${position}]`;
  const change = (id: number, part: Partial<AssertionRow>) =>
    setAssertions((old) =>
      old.map((one) => (one.id === id && "row" in one ? { ...one, row: { ...one.row, ...part } } : one)),
    );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setSyntaxError(null);
    const assert: TestCaseInput["assert"] = [];
    for (const one of assertions) {
      try {
        assert.push("row" in one ? toAssertion(one.row) : one.fixed);
      } catch (cause) {
        setSyntaxError({ id: one.id, text: `This is not JSON: ${(cause as Error).message}.` });
        return;
      }
    }
    const { input, errors: ofInputs } = inputs.read();
    setInvalid(ofInputs);
    if (Object.keys(ofInputs).length === 0) onSave({ ...testCase, title, isHidden, input, assert });
  };
  return (
    <Dialog title={isNew ? "New test" : "Edit the test"} onClose={onClose}>
      <form className="stack form" onSubmit={submit} noValidate data-own-undo>
        <FormError error={error} title="The test was not saved" />
        <Field label="What it tests" error={errors[`${place}.title`]}>
          {(control) => (
            <input
              {...control}
              className="input"
              maxLength={200}
              dir="auto"
              value={title}
              onChange={({ target }) => setTitle(target.value)}
            />
          )}
        </Field>
        <CaseInputFields inputs={inputs} errors={{ ...inputErrors(errors, `${place}.input`), ...invalid }} />
        <fieldset className="plain stack">
          <legend className="m">The output …</legend>
          {assertions.map((one, at) =>
            "row" in one ? (
              <AssertionFields
                key={one.id}
                row={one.row}
                number={at + 1}
                error={
                  syntaxError?.id === one.id
                    ? syntaxError.text
                    : (errors[`${place}.assert[${at}].value`] ??
                      errors[`${place}.assert[${at}].threshold`] ??
                      errors[`${place}.assert[${at}]`])
                }
                onChange={(part) => change(one.id, part)}
                onRemove={
                  assertions.length > 1
                    ? () => setAssertions((old) => old.filter(({ id }) => id !== one.id))
                    : undefined
                }
              />
            ) : (
              <p key={one.id} className="sm soft">
                <code>{one.fixed.type}</code> stays as it was sent by the API.
              </p>
            ),
          )}
          <div>
            <button
              type="button"
              className="btn quiet s"
              onClick={() => setAssertions((old) => [...old, withId(NEW_ROW)])}
            >
              <PlusIcon /> Add a check
            </button>
          </div>
        </fieldset>
        <CheckRow isChecked={isHidden} onChange={setHidden}>
          Hidden: buyers see only what it tests
        </CheckRow>
        <DialogButtons>
          <button type="button" className="btn" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="btn primary" disabled={isPending}>
            Save the test
          </button>
        </DialogButtons>
      </form>
    </Dialog>
  );
}

function toEdited(assertion: TestCaseInput["assert"][number]): EditedAssertion {
  const row = toRow(assertion);
  return row ? withId(row) : { id: ++lastId, fixed: assertion };
}

interface AssertionFieldsProps {
  row: AssertionRow;
  number: number;
  error: string | undefined;
  onChange: (part: Partial<AssertionRow>) => void;
  onRemove: (() => void) | undefined;
}

function AssertionFields({ row, number, error, onChange, onRemove }: AssertionFieldsProps) {
  const kind = kindOf(row.type);
  return (
    <div className="assertion">
      <select
        className="input"
        aria-label={`Check ${number}: must it hold?`}
        value={row.isNegated ? "not" : ""}
        onChange={({ target }) => onChange({ isNegated: target.value === "not" })}
      >
        <option value="">must be one that</option>
        <option value="not">must not be one that</option>
      </select>
      <select
        className="input"
        aria-label={`Check ${number}: kind`}
        value={row.type}
        onChange={({ target }) => onChange({ type: target.value })}
      >
        {ASSERTION_KINDS.map(({ type, label }) => (
          <option key={type} value={type}>
            {label}
          </option>
        ))}
      </select>
      {kind && kind.value !== "none" && (
        <Field label={<span className="hidden">Check {number}: value</span>} error={error}>
          {(control) => (
            <textarea
              {...control}
              className={kind.value === "schema" ? "input mono" : "input"}
              rows={kind.value === "text" ? 1 : 3}
              dir="auto"
              placeholder={kind.value === "list" ? "One on each line" : undefined}
              value={row.value}
              onChange={({ target }) => onChange({ value: target.value })}
            />
          )}
        </Field>
      )}
      {kind?.threshold && (
        <Field label={`Limit, ${kind.threshold}`} error={kind.value === "none" ? error : undefined}>
          {(control) => (
            <input
              {...control}
              className="input"
              inputMode="decimal"
              value={row.threshold}
              onChange={({ target }) => onChange({ threshold: target.value })}
            />
          )}
        </Field>
      )}
      {kind?.value === "none" && !kind.threshold && error !== undefined && <p className="ferr">{error}</p>}
      {onRemove && (
        <div>
          <button type="button" className="btn quiet s" onClick={onRemove}>
            Remove check {number}
          </button>
        </div>
      )}
    </div>
  );
}
