import { PauseIcon, PlayIcon } from "./icons.tsx";

/** Pauses a list that shows new rows by itself. */
export const LiveSwitch = ({
  isLive,
  onChange,
}: {
  isLive: boolean;
  onChange: (isLive: boolean) => void;
}) => (
  <button type="button" className="btn quiet s" aria-pressed={!isLive} onClick={() => onChange(!isLive)}>
    {isLive ? <PauseIcon /> : <PlayIcon />}
    {isLive ? "Pause" : "Resume"}
  </button>
);
