interface SortSelectProps<Value extends string> {
  sorts: readonly { value: Value; label: string }[];
  value: Value;
  onChange: (value: Value) => void;
}

/** The order of a list. */
export const SortSelect = <Value extends string>({ sorts, value, onChange }: SortSelectProps<Value>) => (
  <select
    className="input sort"
    aria-label="Order of the list"
    value={value}
    onChange={(event) => onChange(event.target.value as Value)}
  >
    {sorts.map(({ value, label }) => (
      <option key={value} value={value}>
        {label}
      </option>
    ))}
  </select>
);
