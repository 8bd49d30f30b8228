import { PERMISSIONS, type Permission, PRESETS } from "../lib/permissions.ts";

interface PermissionPickerProps {
  /** "Allows" */
  label: string;
  chosen: Permission[];
  onChange: (chosen: Permission[]) => void;
  error?: string | undefined;
}

/** Presets, and a checkbox for each permission. */
export function PermissionPicker({ label, chosen, onChange, error }: PermissionPickerProps) {
  const isPreset = (permissions: Permission[]) =>
    permissions.length === chosen.length && permissions.every((name) => chosen.includes(name));
  const toggle = (name: Permission) =>
    onChange(chosen.includes(name) ? chosen.filter((other) => other !== name) : [...chosen, name]);
  return (
    <fieldset className="field plain">
      <legend className="m">{label}</legend>
      <div className="seg s">
        {PRESETS.map(({ label, permissions }) => (
          <button
            key={label}
            type="button"
            aria-pressed={isPreset(permissions)}
            onClick={() => onChange(permissions)}
          >
            {label}
          </button>
        ))}
      </div>
      {PERMISSIONS.map(({ name, label, text }) => (
        <label key={name} className="choice">
          <input
            type="checkbox"
            className="check"
            checked={chosen.includes(name)}
            onChange={() => toggle(name)}
          />
          <span>
            <span className="m">{label}</span> <span className="soft sm">{text}</span>
          </span>
        </label>
      ))}
      {error !== undefined && <p className="ferr">{error}</p>}
    </fieldset>
  );
}
