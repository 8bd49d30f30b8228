import "./palette.css";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, useDeferredValue, useId, useState } from "react";
import { formatMoney } from "../../lib/format.ts";
import { productPath } from "../../lib/slug.ts";
import { suggestionsQuery } from "../../queries/market.ts";
import { isAdmin, useAccount } from "../../session.ts";
import { Dialog } from "../dialog.tsx";
import { ADMIN_PAGES, DEVELOPER_PAGES, MEMBER_PAGES, STUDIO_PAGES } from "./shell.tsx";

interface Entry {
  /** The path that it leads to. */
  to: string;
  label: string;
  /** What kind of entry it is, or a fact about it. */
  note: string;
}

const PUBLIC_ENTRIES: Entry[] = [
  { to: "/", label: "Home", note: "Page" },
  { to: "/search", label: "Market", note: "Page" },
];
const MEMBER_ENTRIES: Entry[] = [
  { to: "/library", label: "Library", note: "Page" },
  { to: "/orders", label: "Orders and receipts", note: "Page" },
  { to: "/wishlist", label: "Wishlist", note: "Page" },
  { to: "/runs", label: "Runs", note: "Page" },
  ...MEMBER_PAGES.map(({ to, label }) => ({ to, label, note: "Account" })),
  ...DEVELOPER_PAGES.map(({ to, label }) => ({ to, label, note: "Developers" })),
  ...STUDIO_PAGES.map(({ to, label }) => ({ to, label, note: "Studio" })),
];
const ADMIN_ENTRIES: Entry[] = ADMIN_PAGES.map(({ to, label }) => ({ to, label, note: "Administration" }));

/** Where a pasted id leads. */
const ID_PAGES: [RegExp, (id: string) => Entry][] = [
  [/^prod_\w{26}$/, (id) => ({ to: `/p/${id}`, label: id, note: "Product" })],
  [/^ord_\w{26}$/, (id) => ({ to: `/orders/${id}`, label: id, note: "Order" })],
  [/^exec_\w{26}$/, (id) => ({ to: `/runs/${id}`, label: id, note: "Run" })],
  [/^whk_\w{26}$/, (id) => ({ to: `/settings/webhooks/${id}`, label: id, note: "Webhook" })],
  [/^dlv_\w{26}$/, (id) => ({ to: `/settings/deliveries/${id}`, label: id, note: "Delivery" })],
  [/^evt_\w{26}$/, (id) => ({ to: `/settings/events?open=${id}`, label: id, note: "Event" })],
  [/^req_\w+$/, (id) => ({ to: `/settings/logs?requestId=${id}`, label: id, note: "Request" })],
];

const MAX_PAGES = 6;

/** Ctrl K: goes to a page, a product or what an id names. */
export default function Palette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const [chosen, choose] = useState(0);
  const listId = useId();
  const navigate = useNavigate();
  const entries = useEntries(text.trim());
  const selected = Math.min(chosen, entries.length - 1);
  const go = (entry: Entry | undefined) => {
    if (!entry) return;
    onClose();
    void navigate({ to: entry.to });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && entries.length > 0) {
      event.preventDefault();
      choose((selected + step + entries.length) % entries.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      go(entries[selected]);
    }
  };
  return (
    <Dialog title="Go to" onClose={onClose}>
      <input
        className="input"
        role="combobox"
        aria-label="Page, product or id"
        aria-expanded={entries.length > 0}
        aria-controls={listId}
        aria-activedescendant={entries.length > 0 ? `${listId}-${selected}` : undefined}
        autoComplete="off"
        placeholder="Page, product or id"
        maxLength={200}
        value={text}
        onKeyDown={onKeyDown}
        onChange={(event) => {
          setText(event.target.value);
          choose(0);
        }}
      />
      <div className="palette" role="listbox" id={listId} aria-label="Results">
        {entries.map((entry, at) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field above has the focus and the keys
          <div
            key={entry.to}
            role="option"
            id={`${listId}-${at}`}
            aria-selected={at === selected}
            tabIndex={-1}
            onClick={() => go(entry)}
          >
            <span className="cut" dir="auto">
              {entry.label}
            </span>
            <span className="soft sm">{entry.note}</span>
          </div>
        ))}
      </div>
      {entries.length === 0 && <p className="soft">Nothing has this name or id.</p>}
    </Dialog>
  );
}

function useEntries(text: string): Entry[] {
  const account = useAccount();
  const searched = useDeferredValue(text);
  const { data } = useQuery({
    ...suggestionsQuery(searched),
    enabled: searched.length > 1,
    placeholderData: keepPreviousData,
  });
  for (const [pattern, toEntry] of ID_PAGES) if (pattern.test(text)) return [toEntry(text)];
  const pages = [
    ...PUBLIC_ENTRIES,
    ...(account === null ? [] : MEMBER_ENTRIES),
    ...(isAdmin(account) ? ADMIN_ENTRIES : []),
  ];
  const matching = pages.filter(({ label }) => label.toLowerCase().includes(text.toLowerCase()));
  const products = text.length > 1 ? (data?.data ?? []) : [];
  return [
    ...matching.slice(0, MAX_PAGES),
    ...products.map((product) => ({
      to: `/p/${productPath(product)}`,
      label: product.title,
      note: formatMoney(product.price, product.currency),
    })),
  ];
}
