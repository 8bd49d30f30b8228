import { Link } from "@tanstack/react-router";

interface ChipsProps<Value extends string> {
  label: string;
  /** The search parameter. */
  name: string;
  value: Value | undefined;
  options: readonly (readonly [value: Value | undefined, label: string])[];
}

/** One filter of a list as links. Another choice leads to the first page. */
export const Chips = <Value extends string>({ label, name, value, options }: ChipsProps<Value>) => (
  <nav className="row wrap" aria-label={label}>
    {options.map(([each, text]) => (
      <Link
        key={text}
        to="."
        search={(old: object) => ({ ...old, [name]: each, page: undefined })}
        className={each === value ? "chip on" : "chip"}
        aria-current={each === value ? "true" : undefined}
        resetScroll={false}
      >
        {text}
      </Link>
    ))}
  </nav>
);
