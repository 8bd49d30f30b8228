import type { Account } from "@stoa/sdk";
import { lazy, useState } from "react";
import { Part } from "../part.tsx";
import { AccountButton } from "./account-button.tsx";

const OpenAccountMenu = lazy(() => import("./open-account-menu.tsx"));

/** The member's pages, the color scheme and the sign-out. */
export function AccountMenu({ account }: { account: Account }) {
  const [isWanted, want] = useState(false);
  const closed = <AccountButton account={account} aria-haspopup="menu" onClick={() => want(true)} />;
  if (!isWanted) return closed;
  return (
    <Part fallback={closed}>
      <OpenAccountMenu account={account} />
    </Part>
  );
}
