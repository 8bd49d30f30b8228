import "./filters.css";
import { useEffect, useState } from "react";
import { CloseIcon, SearchIcon } from "./icons.tsx";

interface FilterSelectProps {
  label: string;
  /** What it shows without a filter. */
  none: string;
  value: string | undefined;
  options: readonly (readonly [value: string, label: string])[];
  onChange: (value: string | undefined) => void;
}

/** A filter of a list with fixed values. */
export const FilterSelect = ({ label, none, value = "", options, onChange }: FilterSelectProps) => (
  <select
    aria-label={label}
    className={value === "" ? "input filter" : "input filter on"}
    value={value}
    onChange={(event) => onChange(event.target.value || undefined)}
  >
    <option value="">{none}</option>
    {options.map(([each, text]) => (
      <option key={each} value={each}>
        {text}
      </option>
    ))}
  </select>
);

/** A filter that an address sets, and that has no control of its own. */
export const FilterChip = ({ text, onRemove }: { text: string; onRemove: () => void }) => (
  <button type="button" className="chip on" aria-label={`Remove the filter ${text}`} onClick={onRemove}>
    {text} <CloseIcon size={13} />
  </button>
);

const TYPING_MS = 300;

interface FilterTextProps {
  label: string;
  placeholder: string;
  value: string | undefined;
  onChange: (value: string | undefined) => void;
}

/** A filter by text, applied after typing pauses. */
export function FilterText({ label, placeholder, value = "", onChange }: FilterTextProps) {
  const [typed, setTyped] = useState(value);
  // Back and links change the filter, too.
  useEffect(() => setTyped(value), [value]);
  useEffect(() => {
    if (typed.trim() === value) return;
    const timer = setTimeout(() => onChange(typed.trim() || undefined), TYPING_MS);
    return () => clearTimeout(timer);
  });
  return (
    <div className="input filter text">
      <SearchIcon />
      <input
        type="search"
        aria-label={label}
        placeholder={placeholder}
        value={typed}
        maxLength={100}
        spellCheck={false}
        onChange={(event) => setTyped(event.target.value)}
      />
    </div>
  );
}
