import "./user.css";
import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { AuditEntries } from "../../components/administration/audit-entries.tsx";
import { Avatar } from "../../components/avatar.tsx";
import { Fact } from "../../components/fact.tsx";
import { ChevronIcon, WarningIcon } from "../../components/icons.tsx";
import { Id } from "../../components/id.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { Time } from "../../components/time.tsx";
import { userStatus } from "../../lib/admin-statuses.ts";
import { curlOf } from "../../lib/curl.ts";
import { useTitle } from "../../lib/use-title.ts";
import { historyQuery, PLAN_NAMES, ROLE_NAMES, userQuery } from "../../queries/administration.ts";
import { useAccount } from "../../session.ts";
import { UserActions } from "./user-actions.tsx";
import type { EditedUser } from "./user-draft.ts";
import { UserForm } from "./user-form.tsx";

const route = getRouteApi("/admin-shell/admin/users/$userId");

export default function User() {
  const { userId } = route.useParams();
  const { data: user } = useSuspenseQuery(userQuery(userId));
  const { data: entries } = useSuspenseQuery(historyQuery(userId));
  useTitle(user.name);
  return (
    <main className="work admin-user" id="content">
      <nav className="crumb" aria-label="Path">
        <Link to="/admin/users">Users</Link>
        <ChevronIcon />
        <span dir="auto">{user.name}</span>
      </nav>
      <Head user={user} />
      {user.bannedAt !== null && (
        <div className="strip warning">
          <WarningIcon size={20} />
          <span className="grow">
            <b>Banned</b> <Time iso={user.bannedAt} />. {user.banReason}
          </span>
        </div>
      )}
      <div className="admin-columns">
        <div>
          <section className="beam thin stack">
            <h2 className="h3">Role, plan and quota</h2>
            {user.closedAt === null ? (
              <UserForm key={user.id} user={user} />
            ) : (
              <p className="soft">The account is closed. Its orders and receipts stay.</p>
            )}
          </section>
          <section className="beam thin stack">
            <div className="row between wrap">
              <h2 className="h3">What happened</h2>
              <Link to="/admin/audit" search={{ target: user.id }} className="link sm">
                All about this account
              </Link>
            </div>
            {entries.length === 0 ? (
              <p className="soft">No administrator has done anything here yet.</p>
            ) : (
              <AuditEntries entries={entries} />
            )}
          </section>
        </div>
        <Facts user={user} />
      </div>
    </main>
  );
}

function Head({ user }: { user: EditedUser }) {
  const [tone, label] = userStatus(user);
  return (
    <div className="row wrap between admin-user-head">
      <div className="row">
        <Avatar name={user.name} image={user.avatar} />
        <div>
          <h1 className="page-title" dir="auto">
            {user.name}
          </h1>
          <div className="row wrap sm soft">
            <span>{user.email}</span>
            <StatusTag tone={tone}>{label}</StatusTag>
            {user.verified && <StatusTag tone="good">Verified</StatusTag>}
          </div>
        </div>
      </div>
      {user.closedAt === null && <UserActions user={user} />}
    </div>
  );
}

function Facts({ user }: { user: EditedUser }) {
  const isSelf = useAccount()?.id === user.id;
  return (
    <aside className="panel admin-facts" aria-label="Facts">
      <dl>
        <Fact term="Id">
          <Id id={user.id} />
        </Fact>
        <Fact term="Role">{ROLE_NAMES[user.role as keyof typeof ROLE_NAMES] ?? user.role}</Fact>
        <Fact term="Plan">{PLAN_NAMES[user.plan as keyof typeof PLAN_NAMES] ?? user.plan}</Fact>
        <Fact term="Email">{user.emailVerified ? "confirmed" : "not confirmed"}</Fact>
        <Fact term="Two factors">{user.twoFactor.enabled ? "on" : "off"}</Fact>
        <Fact term="Since">
          <Time iso={user.createdAt} isDay />
        </Fact>
      </dl>
      <ul className="stack sm">
        <li>
          <Link to="/admin/orders" search={{ buyer: user.id }} className="link">
            Orders
          </Link>
        </li>
        <li>
          <Link to="/admin/orders" search={{ seller: user.id }} className="link">
            Sales
          </Link>
        </li>
        <li>
          <Link to="/admin/moderation" search={{ seller: user.id }} className="link">
            Products
          </Link>
        </li>
        <li>
          <Link to="/admin/payouts" search={{ seller: user.id }} className="link">
            Payouts
          </Link>
        </li>
        <li>
          <Link to="/admin/webhooks" search={{ owner: user.id, status: "all" }} className="link">
            Webhooks
          </Link>
        </li>
        <li>
          <Link to="/admin/oauth-clients" search={{ owner: user.id }} className="link">
            OAuth clients
          </Link>
        </li>
        <li>
          <Link to="/admin/audit" search={{ actor: user.id }} className="link">
            What this account did
          </Link>
        </li>
      </ul>
      {isSelf && <p className="sm soft">This is your own account.</p>}
      <ShowAsCode
        curl={curlOf("GET", `/admin/users/${user.id}`)}
        sdk={`const user = await stoa.admin.users.get("${user.id}");`}
      />
    </aside>
  );
}
