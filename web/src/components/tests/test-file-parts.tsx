import { formatCount } from "../../lib/format.ts";
import type { RefusedPart } from "../../lib/test-files.ts";

const MOST_SHOWN = 100;

/** What of a file is not imported, or cannot be exported, each with its place. */
export function RefusedParts({ title, parts }: { title: string; parts: RefusedPart[] }) {
  return (
    <div role="alert">
      <p className="m">{title}</p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard */}
      <div className="test-file-parts" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th>Line</th>
              <th>Place and reason</th>
            </tr>
          </thead>
          <tbody>
            {parts.slice(0, MOST_SHOWN).map(({ line, path, reason }) => (
              <tr key={`${line} ${path} ${reason}`}>
                <td className="num nowrap">{line === null ? "–" : formatCount(line)}</td>
                <td>
                  {path !== "" && (
                    <>
                      <code>{path}</code>{" "}
                    </>
                  )}
                  {reason}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {parts.length > MOST_SHOWN && (
        <p className="sm soft">And {formatCount(parts.length - MOST_SHOWN)} more.</p>
      )}
    </div>
  );
}
