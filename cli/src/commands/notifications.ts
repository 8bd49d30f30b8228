import type { Notification } from "@stoa/sdk";
import type { Command } from "commander";
import { time } from "../format.ts";
import { listCommand } from "../resource.ts";

export default function define(command: Command): void {
  listCommand<Notification, { unread?: boolean }>(command, {
    name: "list",
    description: "List your notifications, newest first",
    options: (list) => list.option("--unread", "only unread ones"),
    examples: ["stoa notifications list --unread"],
    columns: [
      { field: "id", title: "Notification" },
      { field: "title", title: "Title" },
      { field: "text", title: "Text", format: ({ text }) => text ?? "" },
      { field: "createdAt", title: "At", format: ({ createdAt }) => time(createdAt) },
    ],
    open: (stoa, page, { unread }) => stoa.notifications.list({ ...page, ...(unread && { unread }) }),
  });
}
