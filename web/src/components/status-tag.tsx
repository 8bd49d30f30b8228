import type { ReactNode } from "react";
import { AlertIcon, CheckIcon, ClockIcon, PlayIcon } from "./icons.tsx";

/** `good`: it succeeded. `bad`: it failed. `warning`: it waits for someone. `accent`: it runs. `neutral`: it has ended. */
export type Tone = "good" | "bad" | "warning" | "accent" | "neutral";

const icons: Record<Tone, ReactNode> = {
  good: <CheckIcon />,
  bad: <AlertIcon />,
  warning: <ClockIcon />,
  accent: <PlayIcon />,
  neutral: null,
};

interface StatusTagProps {
  tone: Tone;
  /** In place of that of the tone. */
  icon?: ReactNode;
  children: ReactNode;
}

/** A status is never a color alone: each has an icon and a word. */
export const StatusTag = ({ tone, icon = icons[tone], children }: StatusTagProps) => (
  <span className={tone === "neutral" ? "tag" : `tag ${tone}`}>
    {icon}
    {children}
  </span>
);
