import "./account.css";
import type { Notification } from "@stoa/sdk";
import { useMutation, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { stoa } from "../../api.ts";
import { EmptyState } from "../../components/empty-state.tsx";
import { Pager } from "../../components/pager.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { Time } from "../../components/time.tsx";
import { curlOf } from "../../lib/curl.ts";
import { formatCount } from "../../lib/format.ts";
import { showError } from "../../lib/toasts.ts";
import { useTitle } from "../../lib/use-title.ts";
import { notificationsQuery } from "../../queries/account.ts";

const route = getRouteApi("/notifications");

export default function Notifications() {
  useTitle("Notifications");
  const search = route.useSearch();
  const client = useQueryClient();
  const { data } = useSuspenseQuery(notificationsQuery(search));
  const unreadCount = Number(data.meta["unreadCount"] ?? 0);
  const { queryKey } = notificationsQuery(search);
  const read = useMutation({
    mutationFn: async (body: { ids: string[] } | { before: string }) => await stoa.notifications.read(body),
    // The rows change at once; the list is read again, whatever comes of it.
    onMutate: (body) =>
      client.setQueryData(queryKey, (page) => {
        const isRead = ({ id }: Notification) => !("ids" in body) || body.ids.includes(id);
        const readAt = new Date().toISOString();
        return (
          page && { ...page, data: page.data.map((each) => (isRead(each) ? { ...each, readAt } : each)) }
        );
      }),
    onError: (error) => showError("They are still unread", error),
    onSettled: () => client.invalidateQueries({ queryKey: ["notifications"] }),
  });
  return (
    <main className="page narrow" id="content">
      <div className="row between wrap">
        <h1 className="page-title">Notifications</h1>
        <div className="row wrap">
          <Link to="/account/notifications" className="link">
            Emails
          </Link>
          <button
            type="button"
            className="btn s"
            disabled={unreadCount === 0 || read.isPending}
            onClick={() => read.mutate({ before: data.meta.timestamp })}
          >
            Mark all as read
          </button>
        </div>
      </div>
      <nav className="tabs" aria-label="Which notifications">
        <Link
          to="."
          search={{}}
          className={search.unread ? "" : "on"}
          aria-current={search.unread ? undefined : "page"}
        >
          All
        </Link>
        <Link
          to="."
          search={{ unread: true }}
          className={search.unread ? "on" : ""}
          aria-current={search.unread ? "page" : undefined}
        >
          Unread<b>{formatCount(unreadCount)}</b>
        </Link>
      </nav>
      {data.data.length === 0 && search.page === undefined ? (
        <EmptyState
          title={search.unread ? "Nothing is unread" : "No notifications yet"}
          action={
            <Link to="/search" className="btn">
              Search products
            </Link>
          }
        >
          Sales, refunds, new versions of what you own, long runs and changes of your account are listed here
          for 90 days.
        </EmptyState>
      ) : (
        <ul className="rows">
          {data.data.map((notification) => (
            <NotificationRow
              key={notification.id}
              notification={notification}
              onRead={() => read.mutate({ ids: [notification.id] })}
            />
          ))}
        </ul>
      )}
      <Pager page={search.page} hasMore={data.hasMore} />
      <p className="flush">
        <ShowAsCode
          curl={curlOf("GET", "/notifications?unread=true")}
          sdk="for await (const { title, url } of stoa.notifications.list({ unread: true })) console.log(title, url);"
        />
      </p>
    </main>
  );
}

interface NotificationRowProps {
  notification: Notification;
  onRead: () => void;
}

function NotificationRow({ notification, onRead }: NotificationRowProps) {
  const { title, text, url, readAt, createdAt } = notification;
  const isUnread = readAt === null;
  return (
    <li className={isUnread ? "notification unread" : "notification"}>
      {/* The service names a path of this client. */}
      <Link to={url as "/"} className="grow" onClick={() => isUnread && onRead()}>
        <b dir="auto" className={isUnread ? "b" : "m"}>
          {title}
        </b>
        {isUnread && <span className="hidden">, unread</span>}
        {text && (
          <p className="sm soft" dir="auto">
            {text}
          </p>
        )}
      </Link>
      <Time iso={createdAt} className="sm soft" />
      {isUnread && (
        <button type="button" className="btn quiet s" aria-label={`Mark as read: ${title}`} onClick={onRead}>
          Mark as read
        </button>
      )}
    </li>
  );
}
