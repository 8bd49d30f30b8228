import type { RevenueAnalytics } from "@stoa/sdk";
import { formatMoney, formatPercent } from "../../lib/format.ts";
import { GROUPS, type Group } from "../../queries/analytics.ts";
import { ChartFrame } from "./chart-frame.tsx";
import { useChange } from "./controls.tsx";

const MOST_BARS = 6;

const NAMES: Record<Group, string> = {
  product: "product",
  category: "category",
  referral: "referral",
  currency: "currency",
};
/** Keys of groups that the API names by a word. */
const LABELS: Record<string, string> = { direct: "Without a referral", none: "No category" };

type Row = RevenueAnalytics["breakdown"][number];

interface BreakdownProps {
  group: Group;
  revenue: RevenueAnalytics;
  days: string;
}

/** Who or what brought the revenue. */
export function Breakdown({ group, revenue, days }: BreakdownProps) {
  const { breakdown, currency } = revenue;
  const currencyOf = ({ key }: Row) => (group === "currency" ? key : currency);
  const formatAt = (value: number, at: number) => {
    const row = breakdown[at];
    return row ? formatMoney(value, currencyOf(row)) : "";
  };
  const table = {
    file: `revenue-by-${group}-${revenue.startDate}-to-${revenue.endDate}`,
    columns: [
      { name: "Group" },
      { name: "Id" },
      { name: "Currency" },
      { name: "Net revenue", format: formatAt },
      { name: "Gross revenue", format: formatAt },
      { name: "Sales", format: String },
    ],
    rows: breakdown.map((row) => [
      labelOf(row, group),
      row.key,
      currencyOf(row),
      row.netRevenue,
      row.grossRevenue,
      row.sales,
    ]),
  };
  return (
    <ChartFrame
      name="groups"
      title={`Net revenue by ${NAMES[group]}`}
      table={table}
      control={<GroupSelect group={group} />}
      className="beam thin"
    >
      {breakdown.length === 0 ? (
        <p className="soft sm">Nothing was sold or refunded from {days}.</p>
      ) : (
        <Bars group={group} revenue={revenue} currencyOf={currencyOf} />
      )}
    </ChartFrame>
  );
}

const labelOf = ({ key, label }: Row, group: Group): string =>
  group === "product" || group === "currency" ? label : (LABELS[key] ?? label);

function GroupSelect({ group }: { group: Group }) {
  const change = useChange();
  return (
    <select
      className="input analytics-group"
      aria-label="Group by"
      value={group}
      onChange={({ target }) =>
        change({ group: target.value === "product" ? undefined : (target.value as Group) })
      }
    >
      {GROUPS.map((each) => (
        <option key={each} value={each}>
          By {NAMES[each]}
        </option>
      ))}
    </select>
  );
}

interface BarsProps {
  group: Group;
  revenue: RevenueAnalytics;
  currencyOf: (row: Row) => string;
}

/** Amounts of several currencies have no common length, so that they are rows without bars. */
function Bars({ group, revenue: { breakdown, summary }, currencyOf }: BarsProps) {
  const shown = breakdown.slice(0, MOST_BARS);
  const most = Math.max(...breakdown.map(({ netRevenue }) => netRevenue), 0);
  const isComparable = group !== "currency" && breakdown.every(({ netRevenue }) => netRevenue >= 0);
  const share = (value: number) =>
    isComparable && summary.netRevenue > 0 ? formatPercent(value / summary.netRevenue) : "";
  return (
    <>
      <ul className="analytics-bars">
        {shown.map((row) => (
          <li key={row.key}>
            <span className="cut" dir="auto">
              {labelOf(row, group)}
            </span>
            <span className="num">
              <b className="b">{formatMoney(row.netRevenue, currencyOf(row))}</b>{" "}
              <span className="soft">{share(row.netRevenue)}</span>
            </span>
            {group !== "currency" && (
              <i
                aria-hidden="true"
                style={{ "--w": `${most > 0 ? (Math.max(row.netRevenue, 0) / most) * 100 : 0}%` } as object}
              />
            )}
          </li>
        ))}
      </ul>
      {breakdown.length > MOST_BARS && (
        <p className="sm soft">
          {breakdown.length - MOST_BARS} more in the table{breakdown.length === 1_000 && ", the first 1,000"}.
        </p>
      )}
    </>
  );
}
