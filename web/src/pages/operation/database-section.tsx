import { useSuspenseQuery } from "@tanstack/react-query";
import { formatWait } from "../../lib/duration.ts";
import { formatBytes, formatCount } from "../../lib/format.ts";
import { databaseQuery } from "../../queries/operation.ts";

export function DatabaseSection() {
  const { data } = useSuspenseQuery(databaseQuery);
  const { version, size, disk, connections, oldestTransaction: oldest, tables } = data;
  return (
    <section className="beam thin">
      <h2 className="h3">Database and disk</h2>
      <div className="operation-two">
        <dl className="operation-facts">
          <dt>PostgreSQL</dt>
          <dd>{version}</dd>
          <dt>Size</dt>
          <dd>{formatBytes(size)}</dd>
          <dt>Disk of the data folder</dt>
          <dd>{disk ? `${formatBytes(disk.free)} free of ${formatBytes(disk.total)}` : "not readable"}</dd>
          <dt>Connections</dt>
          <dd>
            {formatCount(connections.own)} of this installation, {formatCount(connections.active)} active;{" "}
            {formatCount(connections.used)} of {formatCount(connections.max)} in use
          </dd>
          <dt>Oldest transaction</dt>
          <dd>
            {oldest
              ? `${formatWait(oldest.seconds)}, ${oldest.state}, by ${oldest.application || "unknown"}`
              : "none is open"}
          </dd>
        </dl>
        <details>
          <summary>The largest tables</summary>
          <table className="operation-table">
            <thead>
              <tr>
                <th>Table</th>
                <th className="r">Size</th>
                <th className="r">Rows, estimated</th>
              </tr>
            </thead>
            <tbody>
              {tables.map((table) => (
                <tr key={table.name}>
                  <td className="mono">{table.name}</td>
                  <td className="r">{formatBytes(table.size)}</td>
                  <td className="r desk-cell">{formatCount(table.rows)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </details>
      </div>
    </section>
  );
}
