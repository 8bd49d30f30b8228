import { useNavigate } from "@tanstack/react-router";
import { lazy, useRef, useState } from "react";
import { placesOf } from "../../lib/places.ts";
import { useKeyDown } from "../../lib/use-key-down.ts";
import { isAdmin, useAccount } from "../../session.ts";
import { Part } from "../part.tsx";

const Palette = lazy(() => import("./palette.tsx"));
const ShortcutList = lazy(() => import("./shortcut-list.tsx"));
const EventsDrawer = lazy(() => import("../webhooks/events-drawer.tsx"));

const SEQUENCE_MS = 1_500;

/** The keys that work on every page, and what they open. Without Ctrl or Cmd, none works inside fields. */
export function Shortcuts() {
  const [open, setOpen] = useState<"palette" | "list" | null>(null);
  const [isDrawerOpen, setIsDrawerOpen] = useState(false);
  const navigate = useNavigate();
  const account = useAccount();
  const sequenceStartedAt = useRef(0);
  useKeyDown((event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      setOpen("palette");
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || isDialogOpen()) return;
    const isInSequence = Date.now() - sequenceStartedAt.current < SEQUENCE_MS;
    const place = isInSequence ? placesOf({ isAdmin: isAdmin(account) })[event.key] : undefined;
    sequenceStartedAt.current = event.key === "g" ? Date.now() : 0;
    if (place) void navigate({ to: place.to });
    else if (event.key === "?") setOpen("list");
    else if (event.key === "~") setIsDrawerOpen((isShown) => !isShown);
    else if (event.key === "/") {
      event.preventDefault();
      document.querySelector<HTMLInputElement>(".find input")?.focus();
    }
  });
  const close = () => setOpen(null);
  return (
    <Part>
      {open === "palette" && <Palette onClose={close} />}
      {open === "list" && <ShortcutList onClose={close} />}
      {isDrawerOpen && account && <EventsDrawer onClose={() => setIsDrawerOpen(false)} />}
    </Part>
  );
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));

const isDialogOpen = (): boolean => document.querySelector("dialog[open], [role=menu]") !== null;
