import { Field } from "../../components/field.tsx";

interface CodeFieldProps {
  code: string;
  hint: string;
  error: string | undefined;
  onChange: (code: string) => void;
}

/** A code of an authenticator app. */
export const CodeField = ({ code, hint, error, onChange }: CodeFieldProps) => (
  <Field label="Code" hint={hint} error={error}>
    {(control) => (
      <input
        {...control}
        className="input code-input"
        autoComplete="one-time-code"
        spellCheck={false}
        maxLength={64}
        value={code}
        onChange={({ target }) => onChange(target.value)}
      />
    )}
  </Field>
);
