import type { ReactNode } from "react";

interface RegressionChoiceProps {
  /** Why the service refused the version without it. */
  error: string | undefined;
  isChecked: boolean;
  onChange: (isChecked: boolean) => void;
}

/** Appears when evaluations measured the new version worse than the one on sale. */
export function RegressionChoice({ error, isChecked, onChange }: RegressionChoiceProps): ReactNode {
  if (error === undefined && !isChecked) return null;
  return (
    <label className="check-row">
      <input
        type="checkbox"
        className="check"
        checked={isChecked}
        onChange={({ target }) => onChange(target.checked)}
      />
      <span>The text above tells buyers that this version passes fewer tests</span>
    </label>
  );
}
