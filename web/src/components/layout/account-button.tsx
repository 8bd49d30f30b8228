import type { Account } from "@stoa/sdk";
import type { ComponentProps } from "react";
import { Avatar } from "../avatar.tsx";

interface AccountButtonProps extends ComponentProps<"button"> {
  account: Account;
}

/** The member's picture. It opens the account menu. */
export const AccountButton = ({ account, ...button }: AccountButtonProps) => (
  <button {...button} type="button" className="account">
    <Avatar name={account.name} image={account.avatar} />
    <span className="hidden">Account of {account.name}</span>
  </button>
);
