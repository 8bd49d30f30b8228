import { Menu } from "@mantine/core";
import { useRef } from "react";
import { MoreIcon } from "./icons.tsx";
import type { RowMenuProps } from "./row-menu.tsx";

export default function OpenRowMenu({ label, actions }: RowMenuProps) {
  const opener = useRef<HTMLButtonElement>(null);
  return (
    // The placeholder is an element with a tab stop, which a menu must not have.
    <Menu position="bottom-end" defaultOpened withInitialFocusPlaceholder={false}>
      <Menu.Target>
        <button type="button" className="iconb" aria-label={label} ref={opener}>
          <MoreIcon />
        </button>
      </Menu.Target>
      <Menu.Dropdown>
        {actions.map(({ label, isDestructive = false, isDisabled = false, onSelect }) => (
          <Menu.Item
            key={label}
            disabled={isDisabled}
            {...(isDestructive && { color: "bad" })}
            onClick={() => {
              // A dialog that the action opens returns the focus to what has it now. The item goes with the menu.
              opener.current?.focus();
              onSelect();
            }}
          >
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
