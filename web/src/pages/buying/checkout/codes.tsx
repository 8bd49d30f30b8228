import type { PurchaseQuote } from "@stoa/sdk";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { Field, fieldErrors } from "../../../components/field.tsx";
import { AlertIcon, CheckIcon } from "../../../components/icons.tsx";
import { describeError } from "../../../lib/errors.ts";
import { formatDate, formatMoney } from "../../../lib/format.ts";
import { quoteQuery } from "../../../queries/buying.ts";

/** The codes that the service accepted. */
export interface Codes {
  discountCode: string | null;
  referralCode: string | null;
}

export const termsOf = (productId: string, { discountCode, referralCode }: Codes) => ({
  productId,
  ...(discountCode && { discountCode }),
  ...(referralCode && { referralCode }),
});

interface CodesSectionProps {
  productId: string;
  country: string | null;
  codes: Codes;
  /** With these codes; undefined: not known yet, or refused. */
  quote: PurchaseQuote | undefined;
  /** Of the address, applied at once. */
  initialCode: string | undefined;
  /** Of the quote or the purchase: a code can end between its check and the payment. */
  error: Error | null;
  onChange: (codes: Codes) => void;
}

type CodeKind = "discountCode" | "referralCode";

export function CodesSection(props: CodesSectionProps) {
  const { productId, country, codes, quote, initialCode, error, onChange } = props;
  const client = useQueryClient();
  const refused = error === null ? {} : fieldErrors(error);
  const check = useMutation({
    mutationFn: (asked: Codes & { kind: CodeKind }) =>
      client.fetchQuery({ ...quoteQuery(termsOf(productId, asked), country), staleTime: 0 }),
  });
  const apply = async (kind: CodeKind, code: string | null) => {
    const asked = { ...codes, [kind]: code };
    await check.mutateAsync({ ...asked, kind });
    onChange(asked);
  };
  const saving = quote ? `${formatMoney(quote.lines.discount, quote.currency, quote.decimals)} off` : null;
  const sectionProps = (kind: CodeKind) => ({
    applied: codes[kind],
    error:
      check.error && check.variables.kind === kind
        ? messageOf(check.error, kind, check.variables[kind])
        : refused[kind] && sentenceOf(codes[kind], refused[kind]),
    isBusy: check.isPending,
    onApply: (code: string) => apply(kind, code),
    onRemove: () => {
      check.reset();
      onChange({ ...codes, [kind]: null });
    },
    onEdit: () => check.reset(),
  });
  return (
    <section className="beam">
      <h2>Discount</h2>
      <CodeForm
        {...sectionProps("discountCode")}
        label="Discount code"
        hint="One code per order."
        result={saving}
        initialCode={codes.discountCode ? undefined : initialCode}
      />
      <details className="referral" open={codes.referralCode !== null}>
        <summary className="link sm">Add a referral code</summary>
        <CodeForm
          {...sectionProps("referralCode")}
          label="Referral code"
          hint="The person who told you about this product gets a commission. Your price stays the same."
          result="Accepted"
        />
      </details>
    </section>
  );
}

function messageOf(error: Error, kind: CodeKind, code: string | null): string {
  const reason = fieldErrors(error)[kind];
  return reason === undefined ? describeError(error).text : sentenceOf(code, reason);
}

const ISO_TIME = /\d{4}-\d\d-\d\dT[\d:.]+Z/g;

/** "SUMMER25 was valid until August 31." from "Was valid until 2026-08-31T00:00:00.000Z." */
const sentenceOf = (code: string | null, reason: string): string =>
  `${code ?? "The code"} ${reason.charAt(0).toLowerCase()}${reason.slice(1)}`.replace(ISO_TIME, (iso) =>
    formatDate(iso),
  );

interface CodeFormProps {
  label: string;
  hint: string;
  applied: string | null;
  result: string | null;
  error: string | undefined;
  isBusy: boolean;
  initialCode?: string | undefined;
  onApply: (code: string) => Promise<void>;
  onRemove: () => void;
  onEdit: () => void;
}

function CodeForm(props: CodeFormProps) {
  const { label, hint, applied, result, error, isBusy, initialCode, onApply, onRemove, onEdit } = props;
  const [text, setText] = useState(initialCode ?? "");
  const field = useRef<HTMLInputElement>(null);
  const submit = async (event?: FormEvent) => {
    event?.preventDefault();
    const code = text.trim();
    if (code === "" || isBusy) return;
    try {
      await onApply(code);
    } catch {
      // The field shows the reason.
      field.current?.focus();
    }
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: once, for the code of the address
  useEffect(() => {
    if (initialCode !== undefined) void submit();
  }, []);
  if (applied !== null)
    return (
      <div className="field">
        <div className="row code-applied">
          <span className="input grow">
            <span className="mono grow cut">{applied}</span>
            {result !== null && error === undefined && (
              <span className="row sm good m nowrap" role="status">
                <CheckIcon /> {result}
              </span>
            )}
          </span>
          <button
            type="button"
            className="btn"
            aria-label={`Remove ${label.toLowerCase()}`}
            onClick={onRemove}
          >
            Remove
          </button>
        </div>
        {error !== undefined && (
          <p className="ferr" role="alert">
            <AlertIcon /> {error}
          </p>
        )}
      </div>
    );
  return (
    <form onSubmit={submit}>
      <Field label={label} hint={hint} error={error}>
        {(control) => (
          <span className="row">
            <input
              {...control}
              ref={field}
              className="input mono"
              value={text}
              autoComplete="off"
              autoCapitalize="characters"
              spellCheck={false}
              maxLength={100}
              onChange={({ target }) => {
                setText(target.value);
                onEdit();
              }}
            />
            <button type="submit" className="btn" disabled={isBusy || text.trim() === ""}>
              Apply
            </button>
          </span>
        )}
      </Field>
    </form>
  );
}
