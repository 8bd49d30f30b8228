import { getRouteApi } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";
import { ProductSelect } from "../../components/studio/product-select.tsx";
import { type DaySpan, isDay } from "../../lib/day-span.ts";
import {
  type AnalyticsSearch,
  INTERVALS,
  intervalOf,
  PRESETS,
  type Preset,
  presetOf,
  spanOf,
  zoneOf,
} from "../../queries/analytics.ts";

const route = getRouteApi("/studio-shell/studio/analytics");

const LABELS: Record<Preset, string> = { "7d": "7 d", "30d": "30 d", "90d": "90 d", "12m": "12 months" };

type Changes = { [Name in keyof AnalyticsSearch]: AnalyticsSearch[Name] | undefined };

/** Changes a part of the address; undefined takes it away. */
export function useChange() {
  const navigate = route.useNavigate();
  return (changes: Changes) =>
    void navigate({
      search: (old: AnalyticsSearch) => ({ ...old, ...changes }) as AnalyticsSearch,
      resetScroll: false,
    });
}

/** Which days are shown, and how they are counted. */
export function Controls({ search, currencies }: { search: AnalyticsSearch; currencies: string[] }) {
  const change = useChange();
  const preset = presetOf(search);
  return (
    <search className="row wrap analytics-controls">
      <fieldset className="seg analytics-presets" aria-label="Days">
        {(Object.keys(PRESETS) as Preset[]).map((each) => (
          <button
            key={each}
            type="button"
            aria-pressed={each === preset}
            onClick={() => change({ preset: each, from: undefined, to: undefined, interval: undefined })}
          >
            {LABELS[each]}
          </button>
        ))}
      </fieldset>
      <OwnSpan span={spanOf(search)} />
      <ZoneSelect search={search} />
      <select
        className="input"
        aria-label="Length of a point"
        value={intervalOf(search)}
        onChange={({ target }) => change({ interval: target.value as (typeof INTERVALS)[number] })}
      >
        {INTERVALS.map((interval) => (
          <option key={interval} value={interval}>
            By {interval}
          </option>
        ))}
      </select>
      {currencies.length > 1 && (
        <select
          className="input"
          aria-label="Currency"
          value={search.currency ?? currencies[0]}
          onChange={({ target }) => change({ currency: target.value })}
        >
          {currencies.map((currency) => (
            <option key={currency} value={currency}>
              {currency}
            </option>
          ))}
        </select>
      )}
      <ProductSelect value={search.product} onChange={(product) => change({ product })} />
      <label className="row analytics-compare">
        <input
          type="checkbox"
          checked={search.compare !== "none"}
          onChange={({ target }) => change({ compare: target.checked ? undefined : "none" })}
        />
        Compare with the days before
      </label>
    </search>
  );
}

/** Two days that are applied as soon as both are complete. */
function OwnSpan({ span: { from, to } }: { span: DaySpan }) {
  const [typed, setTyped] = useState({ from, to });
  const change = useChange();
  // Presets and Back change the days, too.
  useEffect(() => setTyped({ from, to }), [from, to]);
  const isReversed = isDay(typed.from) && isDay(typed.to) && typed.from > typed.to;
  const edit = (part: Partial<DaySpan>) => {
    const next = { ...typed, ...part };
    setTyped(next);
    if (isDay(next.from) && isDay(next.to) && next.from <= next.to)
      change({ ...next, preset: undefined, interval: undefined });
  };
  return (
    <span className="stack">
      <span className="row analytics-days">
        <input
          type="date"
          className="input"
          aria-label="First day"
          aria-invalid={isReversed || undefined}
          value={typed.from}
          onChange={({ target }) => edit({ from: target.value })}
        />
        <span className="soft">to</span>
        <input
          type="date"
          className="input"
          aria-label="Last day"
          aria-invalid={isReversed || undefined}
          value={typed.to}
          onChange={({ target }) => edit({ to: target.value })}
        />
      </span>
      {isReversed && (
        <span className="ferr" role="alert">
          The first day must not be after the last one.
        </span>
      )}
    </span>
  );
}

function ZoneSelect({ search }: { search: AnalyticsSearch }) {
  const change = useChange();
  const present = zoneOf(search);
  const zones = useMemo(
    () => [...new Set([present, zoneOf({}), "UTC", ...Intl.supportedValuesOf("timeZone")])],
    [present],
  );
  return (
    <select
      className="input analytics-zone"
      aria-label="Time zone"
      value={present}
      onChange={({ target }) => change({ zone: target.value })}
    >
      {zones.map((zone) => (
        <option key={zone} value={zone}>
          {zone.replaceAll("_", " ")}
        </option>
      ))}
    </select>
  );
}
