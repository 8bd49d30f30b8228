import { placesOf } from "../../lib/places.ts";
import { isAdmin, useAccount } from "../../session.ts";
import { Dialog, DialogButtons } from "../dialog.tsx";

const GENERAL: [string, string][] = [
  ["Ctrl K", "Go to a page, a product or a pasted id"],
  ["/", "Search products"],
  ["?", "Show this list"],
  ["~", "Live events, beside any page"],
  ["Esc", "Close what is open"],
];
const RUNNING: [string, string][] = [
  ["Ctrl Enter", "Run"],
  ["Esc", "Stop the run"],
];
const LISTS: [string, string][] = [
  ["j  k", "Next and previous row"],
  ["Enter", "Open the row"],
  ["r", "Send the delivery again"],
];

export default function ShortcutList({ onClose }: { onClose: () => void }) {
  const places = placesOf({ isAdmin: isAdmin(useAccount()) });
  const placeKeys = Object.entries(places).map(([key, { label }]): [string, string] => [`g ${key}`, label]);
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <Group title="Everywhere" keys={[...GENERAL, ...placeKeys]} />
      <Group title="Run page" keys={RUNNING} />
      <Group title="Lists of the developer area" keys={LISTS} />
      <DialogButtons>
        <button type="button" className="btn" onClick={onClose}>
          Close
        </button>
      </DialogButtons>
    </Dialog>
  );
}

const Group = ({ title, keys }: { title: string; keys: [string, string][] }) => (
  <section className="beam thin">
    <h3>{title}</h3>
    <dl className="shortcuts">
      {keys.map(([key, meaning]) => (
        <div key={key}>
          <dt>
            <kbd className="kbd">{key}</kbd>
          </dt>
          <dd>{meaning}</dd>
        </div>
      ))}
    </dl>
  </section>
);
