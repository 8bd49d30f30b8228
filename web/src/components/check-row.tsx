import type { ReactNode } from "react";

interface CheckRowProps {
  isChecked: boolean;
  isDisabled?: boolean;
  onChange: (isChecked: boolean) => void;
  children: ReactNode;
}

/** A checkbox with its label beside it. */
export const CheckRow = ({ isChecked, isDisabled = false, onChange, children }: CheckRowProps) => (
  <label className="check-row">
    <input
      type="checkbox"
      className="check"
      checked={isChecked}
      disabled={isDisabled}
      onChange={({ target }) => onChange(target.checked)}
    />
    <span>{children}</span>
  </label>
);
