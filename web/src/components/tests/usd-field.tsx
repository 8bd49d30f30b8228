import type { ReactNode } from "react";
import { Field } from "../field.tsx";

interface UsdFieldProps {
  label: string;
  hint?: ReactNode;
  error: string | undefined;
  value: string;
  onChange: (value: string) => void;
}

/** An amount in US dollars, as it is typed. */
export const UsdField = ({ value, onChange, ...field }: UsdFieldProps) => (
  <Field {...field}>
    {(control) => (
      <input
        {...control}
        className="input"
        inputMode="decimal"
        value={value}
        onChange={({ target }) => onChange(target.value)}
      />
    )}
  </Field>
);
