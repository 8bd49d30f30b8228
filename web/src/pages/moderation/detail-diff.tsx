import { TextWithHidden } from "../../components/hidden-characters.tsx";
import type { DetailChange, DetailItem } from "../../lib/detail-changes.ts";

/** Fields with short values: what is gone, and what is new. */
export const DetailDiff = ({ changes }: { changes: DetailChange[] }) =>
  changes.length > 0 && (
    <dl className="detail-diff">
      {changes.map(({ name, removed, added }) => (
        <div key={name}>
          <dt className="sm soft">{name}</dt>
          <dd>
            {removed.map((item, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: equal items have no other name
              <del key={at} dir="auto">
                <span className="hidden">Removed: </span>
                <Item {...item} />
              </del>
            ))}
            {added.map((item, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: equal items have no other name
              <ins key={at} dir="auto">
                <span className="hidden">Added: </span>
                <Item {...item} />
              </ins>
            ))}
          </dd>
        </div>
      ))}
    </dl>
  );

/** The text describes the image, so that its alternative text is empty. */
const Item = ({ text, image }: DetailItem) => (
  <>
    <TextWithHidden text={text} />
    {image !== undefined && <img src={image} alt="" className="detail-image" />}
  </>
);
