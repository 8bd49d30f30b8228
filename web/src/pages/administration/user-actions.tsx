import type { AdminUserDetail } from "@stoa/sdk";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { ReasonDialog } from "../../components/administration/reason-dialog.tsx";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { EyeIcon } from "../../components/icons.tsx";
import { RowMenu } from "../../components/row-menu.tsx";
import { formatCount } from "../../lib/format.ts";
import { showError, showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { historyQuery, userQuery } from "../../queries/administration.ts";
import { useAccount } from "../../session.ts";

type Open = "view" | "ban" | "unban" | "sessions" | null;

interface ActionProps {
  user: AdminUserDetail;
  onClose: () => void;
  onDone: () => void;
}

/** What an administrator does to an account at once. */
export function UserActions({ user }: { user: AdminUserDetail }) {
  const client = useQueryClient();
  const [open, setOpen] = useState<Open>(null);
  const isSelf = useAccount()?.id === user.id;
  const onClose = () => setOpen(null);
  const onDone = () => {
    setOpen(null);
    void client.invalidateQueries({ queryKey: userQuery(user.id).queryKey });
    void client.invalidateQueries({ queryKey: historyQuery(user.id).queryKey });
    void client.invalidateQueries({ queryKey: ["admin", "users"] });
  };
  const dialog = { user, onClose, onDone };
  const isBanned = user.bannedAt !== null;
  return (
    <div className="row wrap">
      {!isSelf && user.role !== "admin" && (
        <button type="button" className="btn" onClick={() => setOpen("view")}>
          <EyeIcon /> View as this user
        </button>
      )}
      {!isSelf && (
        <button
          type="button"
          className={isBanned ? "btn" : "btn danger"}
          onClick={() => setOpen(isBanned ? "unban" : "ban")}
        >
          {isBanned ? "Unban" : "Ban"}
        </button>
      )}
      <RowMenu
        label={`More for ${user.name}`}
        actions={[{ label: "End all sessions", onSelect: () => setOpen("sessions") }]}
      />
      {open === "view" && <ViewDialog {...dialog} />}
      {open === "ban" && <BanDialog {...dialog} />}
      {open === "unban" && <UnbanDialog {...dialog} />}
      {open === "sessions" && <SessionsDialog {...dialog} />}
    </div>
  );
}

function ViewDialog({ user, onClose }: ActionProps) {
  const start = useAction({
    run: async (reason: string) => await stoa.admin.view.start({ userId: user.id, reason }),
    // Every request now reads as the other account: nothing of before may stay in the caches.
    onSuccess: () => location.assign("/account"),
  });
  return (
    <ReasonDialog
      title={`View as ${user.name}?`}
      action="View for 30 minutes"
      keep="Stay yourself"
      reasonHint="For the audit log. The owner gets a notification about the view, without the reason."
      error={start.error}
      errorTitle="The view did not start"
      isPending={start.isPending}
      onSubmit={start.start}
      onClose={onClose}
    >
      <p>
        You read what this account reads, in all tabs of this browser. Every change is refused, and keys,
        sessions, payment methods, runs and product contents stay hidden.
      </p>
    </ReasonDialog>
  );
}

function BanDialog({ user, onClose, onDone }: ActionProps) {
  const ban = useAction({
    run: async (reason: string, idempotencyKey) =>
      await stoa.admin.users.ban(user.id, { reason }, { idempotencyKey }),
    onSuccess: () => {
      showToast(`${user.name} is banned.`);
      onDone();
    },
  });
  return (
    <ReasonDialog
      title={`Ban ${user.name}?`}
      action="Ban the account"
      keep="Keep it"
      isDestructive
      reasonHint="For the audit log."
      error={ban.error}
      errorTitle="The account was not banned"
      isPending={ban.isPending}
      onSubmit={ban.start}
      onClose={onClose}
    >
      <p>
        All sessions end, and no key or link of the account works. Its products are not sold, its payouts
        wait, and its runs are canceled. Buyers keep what they bought.
      </p>
    </ReasonDialog>
  );
}

function UnbanDialog({ user, onClose, onDone }: ActionProps) {
  const unban = useAction({
    run: async (_, idempotencyKey) => await stoa.admin.users.unban(user.id, { idempotencyKey }),
    onSuccess: () => {
      showToast(`${user.name} can sign in again.`);
      onDone();
    },
    onError: (error) => showError("The account is still banned", error),
  });
  return (
    <ConfirmDialog
      title={`Unban ${user.name}?`}
      action="Unban the account"
      keep="Keep it banned"
      isPending={unban.isPending}
      onConfirm={() => unban.start()}
      onClose={onClose}
    >
      <p>The owner can sign in again, and the published products are for sale again.</p>
      {user.banReason && <p className="soft">Banned for: {user.banReason}</p>}
    </ConfirmDialog>
  );
}

function SessionsDialog({ user, onClose, onDone }: ActionProps) {
  const end = useAction({
    run: async (_, idempotencyKey) => await stoa.admin.users.endSessions(user.id, { idempotencyKey }),
    onSuccess: ({ ended }) => {
      showToast(`${formatCount(ended)} ${ended === 1 ? "session" : "sessions"} ended.`);
      onDone();
    },
    onError: (error) => showError("The sessions did not end", error),
  });
  return (
    <ConfirmDialog
      title={`End all sessions of ${user.name}?`}
      action="End all sessions"
      keep="Keep them"
      isPending={end.isPending}
      onConfirm={() => end.start()}
      onClose={onClose}
    >
      <p>The owner has to sign in again on every device. API keys and apps keep working.</p>
    </ConfirmDialog>
  );
}
