import { getRouteApi } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { ChartIcon, DownloadIcon, TableIcon } from "../../components/icons.tsx";
import { toCsv } from "../../lib/csv.ts";
import { saveFile } from "../../lib/save-file.ts";
import type { AnalyticsSearch, ChartName } from "../../queries/analytics.ts";

const route = getRouteApi("/studio-shell/studio/analytics");

/** The numbers of a chart: what its table shows and its CSV has. */
export interface ChartTable {
  /** The name of the file, without days and ending. */
  file: string;
  columns: Column[];
  rows: (string | number)[][];
}

interface Column {
  name: string;
  /** How a cell is shown; numbers are at the right. Without it, the text itself. */
  format?: (value: number, row: number) => string;
}

interface ChartFrameProps {
  name: ChartName;
  title: string;
  /** In place of the title, for the eye: a legend. */
  heading?: ReactNode;
  /** Beside the title. */
  control?: ReactNode;
  table: ChartTable;
  className?: string;
  children: ReactNode;
}

/** A chart that can show its numbers as a table and as CSV. */
export function ChartFrame({
  name,
  title,
  heading,
  control,
  table,
  className = "",
  children,
}: ChartFrameProps) {
  const shown = route.useSearch({ select: ({ table }) => table });
  const isTable = shown === name;
  return (
    <section className={`analytics-chart ${className}`} aria-label={title}>
      <div className="row between wrap analytics-chart-head">
        {heading ?? <h2 className="small-heading">{title}</h2>}
        <span className="row">
          {control}
          <ViewSwitch name={name} isTable={isTable} title={title} />
          <CsvButton table={table} title={title} />
        </span>
      </div>
      {isTable ? <DataTable title={title} {...table} /> : children}
    </section>
  );
}

function ViewSwitch({ name, isTable, title }: { name: ChartName; isTable: boolean; title: string }) {
  const navigate = route.useNavigate();
  const show = (table: ChartName | undefined) =>
    void navigate({
      search: (old: AnalyticsSearch) => ({ ...old, table }) as AnalyticsSearch,
      replace: true,
      resetScroll: false,
    });
  return (
    <span className="seg s">
      <button
        type="button"
        aria-label={`Chart: ${title}`}
        aria-pressed={!isTable}
        onClick={() => show(undefined)}
      >
        <ChartIcon />
      </button>
      <button type="button" aria-label={`Table: ${title}`} aria-pressed={isTable} onClick={() => show(name)}>
        <TableIcon />
      </button>
    </span>
  );
}

export function CsvButton({ table, title }: { table: ChartTable; title: string }) {
  const { file, columns, rows } = table;
  const save = () =>
    saveFile(`${file}.csv`, "text/csv;charset=utf-8", toCsv([columns.map((column) => column.name), ...rows]));
  return (
    <button type="button" className="btn s" aria-label={`CSV: ${title}`} onClick={save}>
      <DownloadIcon /> CSV
    </button>
  );
}

const DataTable = ({ title, columns, rows }: ChartTable & { title: string }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reached by the keyboard
  <section className="analytics-scroll" aria-label={`Numbers: ${title}`} tabIndex={0}>
    <table>
      <thead>
        <tr>
          {columns.map(({ name, format }) => (
            <th key={name} className={format ? "r" : ""}>
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: rows have no state
          <tr key={at}>
            {columns.map(({ name, format }, column) => (
              <td key={name} className={format ? "r" : ""} dir={format ? undefined : "auto"}>
                {formatCell(row[column] ?? "", at, format)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </section>
);

const formatCell = (value: string | number, row: number, format: Column["format"]): string =>
  format && typeof value === "number" ? format(value, row) : String(value);
