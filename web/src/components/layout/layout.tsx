import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useLocation, useNavigate, useSearch } from "@tanstack/react-router";
import { type FormEvent, lazy, useEffect, useRef, useState } from "react";
import { initialData } from "../../initial-data.ts";
import { formatCount } from "../../lib/format.ts";
import { unreadQuery } from "../../queries/notifications.ts";
import { isAdmin, signInUrl, useAccount } from "../../session.ts";
import { BellIcon, FlaskIcon, SearchIcon } from "../icons.tsx";
import { Part } from "../part.tsx";
import { AccountMenu } from "./account-menu.tsx";
import { Logo } from "./logo.tsx";
import { OfflineStrip } from "./offline-strip.tsx";
import { SessionEnded } from "./session-ended.tsx";
import { Shortcuts } from "./shortcuts.tsx";
import { Toasts } from "./toasts.tsx";

const AccountViewStrip = lazy(() => import("./account-view-strip.tsx"));

export function Layout() {
  const view = useAccount()?.view;
  return (
    <>
      <a className="skip" href="#content">
        Skip to content
      </a>
      <Header />
      {view && (
        <Part>
          <AccountViewStrip view={view} />
        </Part>
      )}
      <OfflineStrip />
      <SessionEnded />
      <Outlet />
      <Footer />
      <Toasts />
      <Shortcuts />
    </>
  );
}

interface PageLink {
  to: string;
  label: string;
}

const AREAS: PageLink[] = [{ to: "/search", label: "Market" }];
const NOTIFICATIONS: PageLink = { to: "/notifications", label: "Notifications" };
const MEMBER_AREAS: PageLink[] = [
  { to: "/library", label: "Library" },
  { to: "/studio", label: "Studio" },
  { to: "/settings", label: "Developers" },
];

const ADMIN_AREA: PageLink = { to: "/admin", label: "Administration" };

function Header() {
  const account = useAccount();
  const areas = [...AREAS, ...(account ? MEMBER_AREAS : []), ...(isAdmin(account) ? [ADMIN_AREA] : [])];
  return (
    <header className="top">
      <Link to="/" className="brand">
        <Logo />
        Stoa
      </Link>
      <nav className="areas" aria-label="Areas">
        {areas.map(({ to, label }) => (
          <Link key={to} to={to} activeProps={{ className: "on" }}>
            {label}
          </Link>
        ))}
      </nav>
      <SearchField />
      {initialData.environment === "test" && (
        <span className="test">
          <FlaskIcon />
          <span>Test</span>
        </span>
      )}
      {account ? (
        <>
          <Bell />
          <AccountMenu account={account} />
        </>
      ) : (
        <a className="link nowrap" href={signInUrl()}>
          Sign in
        </a>
      )}
    </header>
  );
}

function Bell() {
  const { data } = useQuery(unreadQuery);
  const count = data?.meta.unreadCount ?? 0;
  return (
    <Link
      to={NOTIFICATIONS.to}
      className="iconb"
      aria-label={count === 0 ? NOTIFICATIONS.label : `${NOTIFICATIONS.label}, ${formatCount(count)} unread`}
    >
      <BellIcon size={20} />
      {count > 0 && <span className="dot" />}
    </Link>
  );
}

const TYPING_MS = 200;

/** On the search page, the results follow the text while it is typed. */
function SearchField() {
  const navigate = useNavigate();
  const isSearching = useLocation({ select: ({ pathname }) => pathname === "/search" });
  const { q = "" } = useSearch({ strict: false }) as { q?: string };
  const [text, setText] = useState(q);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const sent = useRef(q);
  // The address changed by other means than this field. What is typed meanwhile stays.
  useEffect(() => {
    if (q !== sent.current) setText(q);
    sent.current = q;
  }, [q]);
  const search = (words: string, options: { replace?: boolean } = {}) => {
    clearTimeout(timer.current);
    const filters = isSearching ? (old: object) => ({ ...old, page: undefined }) : () => ({});
    sent.current = words.trim();
    const q = sent.current || undefined;
    void navigate({ to: "/search", search: (old) => ({ ...filters(old), q }), ...options });
  };
  const type = (typed: string) => {
    setText(typed);
    clearTimeout(timer.current);
    if (isSearching) timer.current = setTimeout(() => search(typed, { replace: true }), TYPING_MS);
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    search(text);
  };
  return (
    <search className="find">
      <form onSubmit={submit}>
        <SearchIcon />
        <input
          type="search"
          name="q"
          value={text}
          onChange={(event) => type(event.target.value)}
          placeholder="Search products"
          aria-label="Search products"
          maxLength={200}
        />
        <kbd className="kbd desk">Ctrl K</kbd>
      </form>
    </search>
  );
}

const Footer = () => (
  <footer className="foot">
    <span>Stoa</span>
    <a href="/docs">API reference</a>
    <a href="/docs/guides">Guides</a>
  </footer>
);
