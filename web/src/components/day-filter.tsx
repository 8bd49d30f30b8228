interface DayFilterProps {
  label: string;
  value: string | undefined;
  /** The first and the last day that can be chosen. */
  min?: string | undefined;
  max?: string | undefined;
  onChange: (value: string | undefined) => void;
}

/** A day, in the reader's time zone. */
export const DayFilter = ({ label, value = "", min, max, onChange }: DayFilterProps) => (
  <label className="row sm soft">
    {label}
    <input
      type="date"
      className={value === "" ? "input filter" : "input filter on"}
      value={value}
      min={min}
      max={max}
      onChange={(event) => onChange(event.target.value || undefined)}
    />
  </label>
);
