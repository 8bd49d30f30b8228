import type { ReactNode } from "react";
import { CheckRow } from "./check-row.tsx";

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
    <CheckRow isChecked={isChecked} onChange={onChange}>
      The text above tells buyers that this version passes fewer tests
    </CheckRow>
  );
}
