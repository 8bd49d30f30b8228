import type { AdminUser } from "@stoa/sdk";
import { getRouteApi, Link } from "@tanstack/react-router";
import { AdminList } from "../../components/administration/admin-list.tsx";
import { useFilters } from "../../components/administration/use-filters.ts";
import { FilterSelect, FilterText } from "../../components/filters.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { Time } from "../../components/time.tsx";
import { userStatus } from "../../lib/admin-statuses.ts";
import { listCode } from "../../lib/list-code.ts";
import { useListQuery } from "../../lib/use-list-query.ts";
import {
  PLAN_NAMES,
  PLANS,
  parseUsersSearch,
  ROLE_NAMES,
  ROLES,
  USER_STATUSES,
  type UsersSearch,
  usersQuery,
} from "../../queries/administration.ts";

const route = getRouteApi("/admin-shell/admin/users");

const STATUS_NAMES = { active: "Active", banned: "Banned", closed: "Closed" };

export default function Users() {
  const search = parseUsersSearch({ ...route.useSearch() });
  const { data, isFetching } = useListQuery(usersQuery(search));
  return (
    <AdminList
      title="Users"
      code={listCode("/admin/users", "admin.users.list", { ...search })}
      filters={<Filters search={search} />}
      result={data}
      isFetching={isFetching}
      page={search.page}
      nouns={["user", "users"]}
      empty={{ title: "No such users", text: "No account fits the search and the filters." }}
    >
      <table className="admin-table">
        <thead>
          <tr>
            <th>Name</th>
            <th>Status</th>
            <th>Role</th>
            <th>Plan</th>
            <th className="wide-cell">Badge</th>
            <th className="r">Since</th>
          </tr>
        </thead>
        <tbody>
          {data.data.map((user) => (
            <UserRow key={user.id} user={user} />
          ))}
        </tbody>
      </table>
    </AdminList>
  );
}

function Filters({ search }: { search: UsersSearch }) {
  const change = useFilters();
  return (
    <>
      <FilterText
        label="Search users"
        placeholder="Name, email or id"
        value={search.search}
        onChange={(text) => change({ search: text })}
      />
      <FilterSelect
        label="Status"
        none="Any status"
        value={search.status}
        options={USER_STATUSES.map((status) => [status, STATUS_NAMES[status]])}
        onChange={(status) => change({ status })}
      />
      <FilterSelect
        label="Role"
        none="Any role"
        value={search.role}
        options={ROLES.map((role) => [role, ROLE_NAMES[role]])}
        onChange={(role) => change({ role })}
      />
      <FilterSelect
        label="Plan"
        none="Any plan"
        value={search.plan}
        options={PLANS.map((plan) => [plan, PLAN_NAMES[plan]])}
        onChange={(plan) => change({ plan })}
      />
    </>
  );
}

function UserRow({ user }: { user: AdminUser }) {
  const [tone, label] = userStatus(user);
  return (
    <tr>
      <td className="main-cell">
        <Link
          to="/admin/users/$userId"
          params={{ userId: user.id }}
          className="row-target m"
          data-row
          dir="auto"
        >
          {user.name}
        </Link>
        <span className="second soft sm">{user.email}</span>
      </td>
      <td>
        <StatusTag tone={tone}>{label}</StatusTag>
      </td>
      <td>{ROLE_NAMES[user.role as keyof typeof ROLE_NAMES] ?? user.role}</td>
      <td className="soft">{PLAN_NAMES[user.plan as keyof typeof PLAN_NAMES] ?? user.plan}</td>
      <td className="wide-cell soft">{user.verified ? "Verified" : ""}</td>
      <td className="r soft">
        <Time iso={user.createdAt} isDay />
      </td>
    </tr>
  );
}
