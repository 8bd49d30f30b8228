import type { AccountEvent, Event } from "@stoa/sdk";
import type { Column } from "../output.ts";

export const eventColumns: readonly Column<AccountEvent | Event>[] = [
  { field: "created" },
  { field: "type" },
  { field: "id" },
  { field: "data", format: ({ data }) => data },
];
