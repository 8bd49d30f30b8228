import type { Account } from "@stoa/sdk";
import { useEffect, useRef } from "react";
import { AlertIcon } from "../../components/icons.tsx";
import { changesOf, type Profile } from "./profile-fields.ts";

/** The profile was changed elsewhere since the form was opened. */
export interface ProfileConflict {
  theirs: { account: Account; etag: string };
}

interface ProfileConflictStripProps {
  mine: Partial<Profile>;
  before: Profile;
  theirs: Profile;
  isPending: boolean;
  onKeepMine: () => void;
  onTakeTheirs: () => void;
}

const LABELS: Record<keyof Profile, string> = {
  name: "Name",
  handle: "Handle",
  bio: "About you",
  links: "Links",
  country: "Country",
};

const textOf = (value: Profile[keyof Profile] | undefined): string =>
  (typeof value === "string" ? value : value?.map(({ label, url }) => `${label} ${url}`.trim()).join("\n")) ||
  "–";

/** Shows both sides of each field that one of them changed, and asks which is kept. */
export function ProfileConflictStrip(props: ProfileConflictStripProps) {
  const { mine, before, theirs, isPending, onKeepMine, onTakeTheirs } = props;
  const strip = useRef<HTMLDivElement>(null);
  // It stands at the end of a long form.
  useEffect(() => {
    strip.current?.focus({ preventScroll: true });
    strip.current?.scrollIntoView({ block: "center" });
  }, []);
  const changedThere = changesOf(before, theirs);
  const fields = (Object.keys(LABELS) as (keyof Profile)[]).filter(
    (field) => field in mine || field in changedThere,
  );
  return (
    <div className="strip warning conflict" role="alert" tabIndex={-1} ref={strip}>
      <AlertIcon size={20} />
      <div className="grow stack">
        <p>
          <b>Changed elsewhere, since you opened this page.</b> Nothing is lost: keep your changes on top of
          that, or take what is stored now.
        </p>
        <table>
          <thead>
            <tr>
              <th>Field</th>
              <th>Yours</th>
              <th>Stored now</th>
            </tr>
          </thead>
          <tbody>
            {fields.map((field) => (
              <tr key={field}>
                <td>{LABELS[field]}</td>
                <td dir="auto">
                  {field in mine ? textOf(mine[field]) : <span className="soft">not changed</span>}
                </td>
                <td dir="auto">{textOf(theirs[field])}</td>
              </tr>
            ))}
          </tbody>
        </table>
        <div className="row wrap">
          <button type="button" className="btn s" disabled={isPending} onClick={onKeepMine}>
            Keep mine
          </button>
          <button type="button" className="btn s" disabled={isPending} onClick={onTakeTheirs}>
            Take theirs
          </button>
        </div>
      </div>
    </div>
  );
}
