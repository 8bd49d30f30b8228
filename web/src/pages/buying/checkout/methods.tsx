import type { PaymentMethod } from "@stoa/sdk";
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { stoa } from "../../../api.ts";
import { EnterCard } from "../../../components/card-entry.tsx";
import { Field, fieldErrors } from "../../../components/field.tsx";
import { AlertIcon, CardIcon } from "../../../components/icons.tsx";
import { cardName } from "../../../lib/card-name.ts";
import { describeError } from "../../../lib/errors.ts";
import { formatDate } from "../../../lib/format.ts";
import { useAction } from "../../../lib/use-action.ts";
import { paymentMethodsQuery } from "../../../queries/account.ts";

/** The default method, else the first that was not declined; test cards come last. */
export function nextMethod(
  methods: PaymentMethod[],
  declined: ReadonlySet<string>,
): PaymentMethod | undefined {
  const usable = methods.filter(({ id }) => !declined.has(id));
  return usable.find(({ isDefault }) => isDefault) ?? usable[0];
}

const isTestCard = ({ createdAt }: PaymentMethod) => createdAt === null;

interface MethodsSectionProps {
  methods: PaymentMethod[];
  /** null: the buyer adds a card. */
  chosenId: string | null;
  declined: ReadonlySet<string>;
  onChoose: (id: string | null) => void;
  /** The buyer goes to the payment provider's page for cards. */
  onLeave: () => void;
}

export function MethodsSection({ methods, chosenId, declined, onChoose, onLeave }: MethodsSectionProps) {
  const isAdding = chosenId === null;
  // Shared test cards are many: the others stand behind a line, but for the one that pays.
  const [first, others] = partition(
    methods,
    (method) => !isTestCard(method) || method.isDefault || method.id === chosenId || declined.has(method.id),
  );
  const option = (method: PaymentMethod) => (
    <MethodOption
      key={method.id}
      method={method}
      isChosen={method.id === chosenId}
      isDeclined={declined.has(method.id)}
      onChoose={() => onChoose(method.id)}
    />
  );
  return (
    <section className="beam">
      <h2 id="payment">Payment</h2>
      <div className="options" role="radiogroup" aria-labelledby="payment">
        {first.map(option)}
        <label className="option">
          <input
            type="radio"
            name="method"
            className="radio"
            checked={isAdding}
            onChange={() => onChoose(null)}
          />
          <span>
            <span className="m">Another card</span>
            <span className="sm soft">Stored for later purchases; remove it at any time</span>
          </span>
          <span className="soft">
            <CardIcon size={20} />
          </span>
        </label>
        {isAdding && (
          <AddCard methods={methods} onAdded={(method) => onChoose(method.id)} onLeave={onLeave} />
        )}
        {others.length > 0 && (
          <details>
            <summary className="link sm">Other test cards</summary>
            <div className="options">{others.map(option)}</div>
          </details>
        )}
      </div>
    </section>
  );
}

function partition<T>(items: T[], test: (item: T) => boolean): [T[], T[]] {
  return [items.filter(test), items.filter((item) => !test(item))];
}

interface MethodOptionProps {
  method: PaymentMethod;
  isChosen: boolean;
  isDeclined: boolean;
  onChoose: () => void;
}

function MethodOption({ method, isChosen, isDeclined, onChoose }: MethodOptionProps) {
  return (
    <label className="option">
      <input type="radio" name="method" className="radio" checked={isChosen} onChange={onChoose} />
      <span>
        <span className="m">{cardName(method)}</span>
        {isDeclined ? (
          <span className="ferr">
            <AlertIcon /> Declined
          </span>
        ) : (
          <span className="sm soft">{aboutCard(method)}</span>
        )}
      </span>
      {method.isDefault && <span className="tag">Default</span>}
    </label>
  );
}

const TEST_CARD = /^pm_test_([a-z_]+?)(?:_[0-9a-f]{16})?$/;

/** The name of a test card tells its result: pm_test_insufficient_funds. */
function testResult(id: string): string {
  const [, name = id] = TEST_CARD.exec(id) ?? [];
  return name === "ok" ? "succeeds" : name.replaceAll("_", " ");
}

const aboutCard = ({ id, createdAt }: PaymentMethod): string =>
  [
    TEST_CARD.test(id) && `Test card: ${testResult(id)}`,
    createdAt !== null && `Stored ${formatDate(createdAt)}`,
  ]
    .filter(Boolean)
    .join(". ");

interface AddCardProps {
  methods: PaymentMethod[];
  onAdded: (method: PaymentMethod) => void;
  onLeave: () => void;
}

/** Card data goes from the browser to the payment provider only. */
function AddCard({ methods, onAdded, onLeave }: AddCardProps) {
  const [first, ...others] = methods.filter(isTestCard);
  if (first) return <AddTestCard testCards={[first, ...others]} onAdded={onAdded} />;
  return (
    <div className="add-card">
      <p className="sm soft">You enter it at the payment provider, and come back here to pay.</p>
      <EnterCard className="btn" onLeave={onLeave}>
        Enter a card
      </EnterCard>
    </div>
  );
}

interface AddTestCardProps {
  testCards: [PaymentMethod, ...PaymentMethod[]];
  onAdded: (method: PaymentMethod) => void;
}

function AddTestCard({ testCards, onAdded }: AddTestCardProps) {
  const client = useQueryClient();
  const [token, setToken] = useState(testCards[0].id);
  const store = useAction({
    run: async (sent: string) => await stoa.paymentMethods.create({ token: sent }),
    onSuccess: async (method) => {
      await client.invalidateQueries({ queryKey: paymentMethodsQuery.queryKey });
      onAdded(method);
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    store.start(token);
  };
  const error = store.error
    ? (fieldErrors(store.error)["token"] ?? describeError(store.error).text)
    : undefined;
  return (
    <form className="add-card" onSubmit={submit}>
      <Field label="Test card" hint="No money moves in a test environment." error={error}>
        {(control) => (
          <select
            {...control}
            className="input"
            value={token}
            onChange={({ target }) => setToken(target.value)}
          >
            {testCards.map((card) => (
              <option key={card.id} value={card.id}>
                {cardName(card)}: {testResult(card.id)}
              </option>
            ))}
          </select>
        )}
      </Field>
      <button type="submit" className="btn" disabled={store.isPending}>
        {store.isPending ? "Storing" : "Store this card"}
      </button>
    </form>
  );
}
