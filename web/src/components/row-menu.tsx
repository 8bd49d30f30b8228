import { lazy, useState } from "react";
import { MoreIcon } from "./icons.tsx";
import { Part } from "./part.tsx";

const OpenRowMenu = lazy(() => import("./open-row-menu.tsx"));

export interface RowAction {
  label: string;
  isDestructive?: boolean;
  isDisabled?: boolean;
  onSelect: () => void;
}

export interface RowMenuProps {
  /** What the actions are about, for screen readers: "More for shop-backend". */
  label: string;
  actions: RowAction[];
}

/** The less usual actions of a row, behind three dots. */
export function RowMenu(props: RowMenuProps) {
  const [isWanted, want] = useState(false);
  const closed = (
    <button
      type="button"
      className="iconb"
      aria-label={props.label}
      aria-haspopup="menu"
      onClick={() => want(true)}
    >
      <MoreIcon />
    </button>
  );
  if (!isWanted) return closed;
  return (
    <Part fallback={closed}>
      <OpenRowMenu {...props} />
    </Part>
  );
}
