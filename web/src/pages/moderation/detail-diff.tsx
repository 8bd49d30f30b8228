import { TextWithHidden } from "../../components/hidden-characters.tsx";
import type { DetailChange } from "../../lib/detail-changes.ts";

/** Fields with short values: what is gone, and what is new. */
export const DetailDiff = ({ changes }: { changes: DetailChange[] }) =>
  changes.length > 0 && (
    <dl className="detail-diff">
      {changes.map(({ name, removed, added }) => (
        <div key={name}>
          <dt className="sm soft">{name}</dt>
          <dd>
            {removed.map((text, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: equal items have no other name
              <del key={at} dir="auto">
                <span className="hidden">Removed: </span>
                <TextWithHidden text={text} />
              </del>
            ))}
            {added.map((text, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: equal items have no other name
              <ins key={at} dir="auto">
                <span className="hidden">Added: </span>
                <TextWithHidden text={text} />
              </ins>
            ))}
          </dd>
        </div>
      ))}
    </dl>
  );
