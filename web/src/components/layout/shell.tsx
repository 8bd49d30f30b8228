import { Link, Outlet, useLocation } from "@tanstack/react-router";
import { type ReactNode, useEffect, useRef } from "react";
import {
  AppsIcon,
  BellIcon,
  BookIcon,
  CardIcon,
  CloudIcon,
  DownloadIcon,
  EventsIcon,
  GaugeIcon,
  KeyIcon,
  LinkIcon,
  LogIcon,
  ShareIcon,
  ShieldIcon,
  SignatureIcon,
  UserIcon,
  WebhookIcon,
} from "../icons.tsx";

interface ShellPage {
  to: string;
  label: string;
  icon: ReactNode;
  /** Marked only at its own address, not at those below it. */
  isExact?: boolean;
}

interface ShellSection {
  label: string;
  pages: ShellPage[];
}

const ACCOUNT: ShellSection[] = [
  {
    label: "Account",
    pages: [
      { to: "/account", label: "Profile", icon: <UserIcon />, isExact: true },
      { to: "/account/security", label: "Security", icon: <ShieldIcon /> },
      { to: "/account/connected-apps", label: "Connected apps", icon: <LinkIcon /> },
      { to: "/account/notifications", label: "Notifications", icon: <BellIcon /> },
      { to: "/account/data", label: "Your data", icon: <DownloadIcon /> },
    ],
  },
  {
    label: "Paying and running",
    pages: [
      { to: "/account/plan", label: "Plan", icon: <GaugeIcon /> },
      { to: "/account/payment-methods", label: "Payment methods", icon: <CardIcon /> },
      { to: "/account/provider-keys", label: "Provider keys", icon: <CloudIcon /> },
      { to: "/account/referral", label: "Referrals", icon: <ShareIcon /> },
    ],
  },
];

const DEVELOPERS: ShellSection[] = [
  {
    label: "Developers",
    pages: [
      { to: "/settings/api", label: "API keys", icon: <KeyIcon /> },
      { to: "/settings/oauth-apps", label: "OAuth apps", icon: <AppsIcon /> },
      { to: "/settings/webhooks", label: "Webhooks", icon: <WebhookIcon /> },
      { to: "/settings/events", label: "Live events", icon: <EventsIcon /> },
      { to: "/settings/logs", label: "Request log", icon: <LogIcon /> },
    ],
  },
  {
    label: "Tools",
    pages: [{ to: "/settings/signatures", label: "Signature debugger", icon: <SignatureIcon /> }],
  },
];

export const MEMBER_PAGES: ShellPage[] = ACCOUNT.flatMap(({ pages }) => pages);
export const DEVELOPER_PAGES: ShellPage[] = DEVELOPERS.flatMap(({ pages }) => pages);

/** The pages under `/account`. */
export const AccountShell = () => <Shell sections={ACCOUNT} />;

/** The pages under `/settings`. */
export const DeveloperShell = () => (
  <Shell sections={DEVELOPERS}>
    <a href="/docs">
      <BookIcon />
      API reference
    </a>
  </Shell>
);

/** A sidebar and the work area of a dense page, which is a `main` with the class `work` and the id `content`. */
function Shell({ sections, children }: { sections: ShellSection[]; children?: ReactNode }) {
  const nav = useRef<HTMLElement>(null);
  const { pathname } = useLocation();
  // On phones the pages are one row that scrolls sideways.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the link that is marked follows from the address
  useEffect(() => {
    const link = nav.current?.querySelector<HTMLElement>('[aria-current="page"]');
    if (link)
      nav.current?.scrollTo({ left: link.offsetLeft - (nav.current.clientWidth - link.offsetWidth) / 2 });
  }, [pathname]);
  return (
    <div className="shell">
      <nav className="side" aria-label={sections[0]?.label} ref={nav}>
        {sections.map(({ label, pages }) => (
          <Section key={label} label={label} pages={pages} />
        ))}
        {children}
      </nav>
      <Outlet />
    </div>
  );
}

const Section = ({ label, pages }: ShellSection) => (
  <>
    <span className="label">{label}</span>
    {pages.map(({ to, label, icon, isExact = false }) => (
      <Link
        key={to}
        to={to}
        title={label}
        activeOptions={{ exact: isExact }}
        activeProps={{ className: "on" }}
      >
        {icon}
        {label}
      </Link>
    ))}
  </>
);
