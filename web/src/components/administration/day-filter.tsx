interface DayFilterProps {
  label: string;
  value: string | undefined;
  onChange: (value: string | undefined) => void;
}

/** A day, in the reader's time zone. */
export const DayFilter = ({ label, value = "", onChange }: DayFilterProps) => (
  <label className="row sm soft">
    {label}
    <input
      type="date"
      className={value === "" ? "input filter" : "input filter on"}
      value={value}
      onChange={(event) => onChange(event.target.value || undefined)}
    />
  </label>
);
