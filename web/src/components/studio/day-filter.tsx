interface DayFilterProps {
  /** YYYY-MM-DD. */
  from: string | undefined;
  to: string | undefined;
  onChange: (changes: { from?: string | undefined; to?: string | undefined }) => void;
}

/** A filter of a list by its first and its last day. */
export const DayFilter = ({ from, to, onChange }: DayFilterProps) => (
  <>
    <label className="row sm soft">
      from
      <input
        type="date"
        className="input"
        value={from ?? ""}
        max={to}
        onChange={({ target }) => onChange({ from: target.value || undefined })}
      />
    </label>
    <label className="row sm soft">
      to
      <input
        type="date"
        className="input"
        value={to ?? ""}
        min={from}
        onChange={({ target }) => onChange({ to: target.value || undefined })}
      />
    </label>
  </>
);
