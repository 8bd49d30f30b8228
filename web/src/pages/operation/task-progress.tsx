import { formatBytes, formatCount } from "../../lib/format.ts";

interface TaskProgressProps {
  step: string;
  done: number;
  /** 0: not known. */
  total: number;
  unit?: "bytes";
}

/** How far a task is: its step, a bar, and the parts of this step. */
export function TaskProgress({ step, done, total, unit }: TaskProgressProps) {
  const format = unit === "bytes" ? formatBytes : formatCount;
  return (
    <div className="stack" role="status">
      <span className="row between wrap">
        <span>{step}</span>
        <span className="sm soft num">
          {total > 0 ? `${format(done)} of ${format(total)}` : done > 0 && format(done)}
        </span>
      </span>
      <progress
        className="operation-progress"
        aria-label={step}
        {...(total > 0 && { value: done, max: total })}
      />
    </div>
  );
}
