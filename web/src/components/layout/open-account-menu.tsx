import { Menu, useMantineColorScheme } from "@mantine/core";
import type { Account } from "@stoa/sdk";
import { Link } from "@tanstack/react-router";
import { showError } from "../../lib/toasts.ts";
import { isAdmin, signOut } from "../../session.ts";
import { AccountButton } from "./account-button.tsx";

const PAGES: { to: string; label: string }[] = [
  { to: "/library", label: "Library" },
  { to: "/wishlist", label: "Wishlist" },
  { to: "/orders", label: "Orders and receipts" },
  { to: "/studio", label: "Studio" },
  { to: "/settings", label: "Developers" },
  { to: "/account", label: "Account" },
];

const ADMIN_PAGE = { to: "/admin", label: "Administration" };

export default function OpenAccountMenu({ account }: { account: Account }) {
  return (
    // The placeholder is an element with a tab stop, which a menu must not have.
    <Menu position="bottom-end" width={240} defaultOpened withInitialFocusPlaceholder={false}>
      <Menu.Target>
        <AccountButton account={account} />
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{account.email}</Menu.Label>
        {[...PAGES, ...(isAdmin(account) ? [ADMIN_PAGE] : [])].map(({ to, label }) => (
          <Menu.Item key={to} component={Link} to={to}>
            {label}
          </Menu.Item>
        ))}
        <Menu.Divider />
        <ColorScheme />
        <Menu.Divider />
        <Menu.Item onClick={() => signOut().catch((error) => showError("You are still signed in", error))}>
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

const SCHEMES = [
  { value: "auto", label: "Colors of the system" },
  { value: "light", label: "Light colors" },
  { value: "dark", label: "Dark colors" },
] as const;

function ColorScheme() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  return (
    <Menu.RadioGroup value={colorScheme} onChange={(value) => setColorScheme(value as typeof colorScheme)}>
      {SCHEMES.map(({ value, label }) => (
        <Menu.RadioItem key={value} value={value}>
          {label}
        </Menu.RadioItem>
      ))}
    </Menu.RadioGroup>
  );
}
