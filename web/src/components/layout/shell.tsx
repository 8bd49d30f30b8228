import { Link, Outlet, useLocation } from "@tanstack/react-router";
import { type ReactNode, useEffect, useRef } from "react";
import {
  AppsIcon,
  ArchiveIcon,
  BankIcon,
  BellIcon,
  BookIcon,
  CardIcon,
  ChartIcon,
  CloudIcon,
  DiscountIcon,
  DisputeIcon,
  DownloadIcon,
  EventsIcon,
  GaugeIcon,
  HistoryIcon,
  HomeIcon,
  InfoIcon,
  KeyIcon,
  LinkIcon,
  LogIcon,
  MailIcon,
  PackageIcon,
  PlayIcon,
  PulseIcon,
  QueueIcon,
  ReceiptIcon,
  ReviewIcon,
  SettingsIcon,
  ShareIcon,
  ShieldIcon,
  SignatureIcon,
  UndoIcon,
  UserIcon,
  UsersIcon,
  WalletIcon,
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

const STUDIO: ShellSection[] = [
  {
    label: "Studio",
    pages: [
      { to: "/studio", label: "Overview", icon: <HomeIcon />, isExact: true },
      { to: "/studio/products", label: "Products", icon: <PackageIcon /> },
      { to: "/studio/analytics", label: "Analytics", icon: <ChartIcon /> },
      { to: "/studio/runs", label: "Runs", icon: <PlayIcon /> },
    ],
  },
  {
    label: "Selling",
    pages: [
      { to: "/studio/sales", label: "Sales", icon: <ReceiptIcon /> },
      { to: "/studio/refunds", label: "Refunds", icon: <UndoIcon /> },
      { to: "/studio/reviews", label: "Reviews", icon: <ReviewIcon /> },
      { to: "/studio/discounts", label: "Discount codes", icon: <DiscountIcon /> },
      { to: "/studio/referrals", label: "Referrals", icon: <ShareIcon /> },
      { to: "/studio/payouts", label: "Payouts", icon: <WalletIcon /> },
    ],
  },
];

const ADMINISTRATION: ShellSection[] = [
  {
    label: "Moderation",
    pages: [
      { to: "/admin", label: "Overview", icon: <HomeIcon />, isExact: true },
      { to: "/admin/moderation", label: "Products", icon: <PackageIcon /> },
      { to: "/admin/reviews", label: "Reviews", icon: <ReviewIcon /> },
    ],
  },
  {
    label: "Accounts",
    pages: [
      { to: "/admin/users", label: "Users", icon: <UsersIcon /> },
      { to: "/admin/oauth-clients", label: "OAuth clients", icon: <AppsIcon /> },
      { to: "/admin/audit", label: "Audit log", icon: <HistoryIcon /> },
    ],
  },
  {
    label: "Money",
    pages: [
      { to: "/admin/orders", label: "Orders", icon: <ReceiptIcon /> },
      { to: "/admin/refunds", label: "Refunds", icon: <UndoIcon /> },
      { to: "/admin/disputes", label: "Disputes", icon: <DisputeIcon /> },
      { to: "/admin/payouts", label: "Payouts", icon: <BankIcon /> },
    ],
  },
  {
    label: "Operation",
    pages: [
      { to: "/admin/health", label: "Health", icon: <PulseIcon /> },
      { to: "/admin/jobs", label: "Jobs", icon: <QueueIcon /> },
      { to: "/admin/emails", label: "Emails", icon: <MailIcon /> },
      { to: "/admin/webhooks", label: "Webhooks", icon: <WebhookIcon /> },
      { to: "/admin/backups", label: "Backups", icon: <ArchiveIcon /> },
      { to: "/admin/configuration", label: "Configuration", icon: <SettingsIcon /> },
      { to: "/admin/version", label: "Version", icon: <InfoIcon /> },
    ],
  },
];

export const MEMBER_PAGES: ShellPage[] = ACCOUNT.flatMap(({ pages }) => pages);
export const DEVELOPER_PAGES: ShellPage[] = DEVELOPERS.flatMap(({ pages }) => pages);
export const STUDIO_PAGES: ShellPage[] = STUDIO.flatMap(({ pages }) => pages);
export const ADMIN_PAGES: ShellPage[] = ADMINISTRATION.flatMap(({ pages }) => pages);

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

/** The pages under `/studio`. */
export const StudioShell = () => <Shell sections={STUDIO} />;

/** The pages under `/admin`. */
export const AdminShell = () => <Shell sections={ADMINISTRATION} />;

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
