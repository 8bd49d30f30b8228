import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { productStatuses, suspensionReasons } from "@stoa/contract";
import fc from "fast-check";
import { emailsToUser } from "../../../test/emails.ts";
import { createDraft, createProduct } from "../../../test/factories.ts";
import { isFullSize } from "../../../test/full-size.ts";
import { type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { run } from "../../../test/runs.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { moves } from "./lifecycle.ts";

type State = (typeof productStatuses)[number];

/** Section 2 of the contract, as an independent copy. `submit` is `publish` under moderation. */
const contract: Record<string, { by: "author" | "admin"; from: State[]; to: State; auditAction: string }> = {
  publish: {
    by: "author",
    from: ["draft", "rejected", "unpublished"],
    to: "published",
    auditAction: "product.published",
  },
  submit: {
    by: "author",
    from: ["draft", "rejected", "unpublished"],
    to: "pending_review",
    auditAction: "product.submitted",
  },
  withdraw: { by: "author", from: ["pending_review"], to: "draft", auditAction: "product.withdrawn" },
  approve: { by: "admin", from: ["pending_review"], to: "published", auditAction: "product.approved" },
  reject: { by: "admin", from: ["pending_review"], to: "rejected", auditAction: "product.rejected" },
  unpublish: { by: "author", from: ["published"], to: "unpublished", auditAction: "product.unpublished" },
  suspend: {
    by: "admin",
    from: ["published", "unpublished", "pending_review"],
    to: "suspended",
    auditAction: "product.suspended",
  },
  reinstate: { by: "admin", from: ["suspended"], to: "unpublished", auditAction: "product.reinstated" },
  delete: {
    by: "author",
    from: ["draft", "pending_review", "published", "rejected", "unpublished", "suspended"],
    to: "deleted",
    auditAction: "product.deleted",
  },
};

test("the table of moves: those of the contract and no others", () => {
  const table = Object.fromEntries(
    Object.entries(moves).map(([name, { by, from, to, auditAction }]) => [
      name,
      { by, from: [...from], to, auditAction },
    ]),
  );
  assert.deepEqual(table, contract);
});

test("the states: all reachable, and all but deleted can be left", () => {
  const all = Object.values(moves);
  const reached = new Set<State>(["draft"]);
  for (const _ of all)
    for (const { from, to } of all) if (from.some((one) => reached.has(one))) reached.add(to);
  assert.deepEqual([...reached].sort(), [...productStatuses].sort());
  const left = new Set(all.flatMap(({ from }) => from));
  assert.deepEqual([...left].sort(), productStatuses.filter((state) => state !== "deleted").sort());
});

const callers = ["author", "stranger", "buyer", "admin", "admin without two factors"] as const;
type Who = (typeof callers)[number];
const requestedMoves = [
  "publish",
  "withdraw",
  "approve",
  "reject",
  "unpublish",
  "suspend",
  "reinstate",
  "delete",
];
const actions = [...requestedMoves, "change", "buy", "give or take the badge"];

interface Step {
  who: Who;
  action: string;
  code: (typeof suspensionReasons)[number];
}

interface Model {
  state: State;
  everPublished: boolean;
  verified: boolean;
  owned: boolean;
  /** The code of the current suspension. */
  code: string | null;
  events: string[];
  audited: string[];
  emails: number;
}

/** Expected results: an independent implementation of the state machine. */
class World {
  readonly moderation: boolean;
  model: Model = {
    state: "draft",
    everPublished: false,
    verified: false,
    owned: false,
    code: null,
    events: [],
    audited: [],
    emails: 0,
  };

  constructor(moderation: boolean) {
    this.moderation = moderation;
  }

  sees(who: Who): boolean {
    const { state, owned } = this.model;
    if (who === "admin" || state === "published") return true;
    if (who === "author") return state !== "deleted";
    return who === "buyer" && owned;
  }

  get isModerated() {
    return this.moderation && !this.model.verified;
  }

  answerTo({ who, action, code }: Step): string {
    if (action === "buy") return this.buy(who);
    if (action === "give or take the badge") return this.badge(who);
    if (action === "change") return this.change(who);
    return this.move(who, action, code);
  }

  private buy(who: Who): string {
    const { state, everPublished, owned } = this.model;
    if (who !== "buyer") return "nothing";
    if (state !== "published") return everPublished ? "409 PRODUCT_UNAVAILABLE" : "404 PRODUCT_NOT_FOUND";
    if (owned) return "409 ALREADY_PURCHASED";
    this.model.owned = true;
    return "201";
  }

  private badge(who: Who): string {
    if (who !== "admin") return "403 UNAUTHORIZED";
    this.model.verified = !this.model.verified;
    return "200";
  }

  private refusal(who: Who): string | null {
    if (!this.sees(who)) return "404 PRODUCT_NOT_FOUND";
    if (who !== "author" && who !== "admin") return "403 UNAUTHORIZED";
    return this.model.state === "deleted" ? "404 PRODUCT_NOT_FOUND" : null;
  }

  private change(who: Who): string {
    const refusal = this.refusal(who);
    if (refusal) return refusal;
    if (this.model.state === "published" && this.isModerated && who === "author") return "409 INVALID_STATE";
    this.model.events.push("product.updated");
    return "200";
  }

  private move(who: Who, action: string, code: string): string {
    const name = action === "publish" && this.isModerated ? "submit" : action;
    const { by, from, to, auditAction } = contract[name]!;
    if (by === "admin" && who !== "admin") return "403 UNAUTHORIZED";
    const refusal = this.refusal(who);
    if (refusal) return refusal;
    const { model } = this;
    if (!from.includes(model.state)) return "409 INVALID_STATE";
    if (to === "published") model.events.push("product.published");
    if (action === "unpublish") model.events.push("product.unpublished unpublished");
    if (action === "suspend" && model.state === "published")
      model.events.push("product.unpublished suspended");
    if (action === "delete" && model.everPublished) model.events.push("product.unpublished deleted");
    if (by === "admin") model.emails++;
    model.audited.push(`${who} ${auditAction} ${model.state} ${to}`);
    model.everPublished ||= to === "published";
    if (action !== "delete") model.code = action === "suspend" ? code : null;
    model.state = to;
    return "200";
  }
}

const answerOf = ({ status, body }: Reply) => [status, body.error?.code].filter(Boolean).join(" ");

for (const moderation of [false, true]) {
  suite(`moderation ${moderation ? "on" : "off"}`, () => {
    let market: Market;
    const people = {} as Record<Who, Client>;
    before(async () => {
      market = await openMarket({ config: { moderation } });
      people.stranger = await market.createUser();
      people.admin = await market.createSession((await market.createUser({ role: "admin" })).userId, {
        secondFactor: true,
      });
      const weak = await market.createUser({ role: "admin" });
      people["admin without two factors"] = await market.createSession(weak.userId);
    });
    after(() => market.close());

    let titles = 0;
    async function act({ who, action, code }: Step, id: string, verified: boolean): Promise<Reply> {
      market.clock.forward(1_000);
      const client = people[who];
      const path = `/v1/products/${id}`;
      const seller = `/v1/admin/users/${toId("usr", people.author.userId)}`;
      if (action === "buy") return client.post("/v1/purchases", { productId: id });
      if (action === "give or take the badge") return client.patch(seller, { verified: !verified });
      if (action === "delete") return client.delete(path);
      if (action === "change") return client.patch(path, { title: `Title ${++titles}` });
      if (contract[action]!.by === "author") return client.post(`${path}/${action}`);
      const headers: Record<string, string> = {};
      if (action === "approve")
        headers["if-match"] = (await client.get(path)).headers.get("etag") ?? '"none"';
      const said = { approve: undefined, reinstate: undefined, reject: { reason: "So." } };
      const body = action === "suspend" ? { reasonCode: code, reason: "So." } : said[action as "reject"];
      return client.post(`/v1/admin/products/${id}/${action}`, body, headers);
    }

    /** `actor action from to` of each audit entry, oldest first. */
    async function auditedMoves(id: string): Promise<string[]> {
      const { rows } = await market.query(
        "select actor_id, action, details from audit_log where target_id = $1 and action <> 'product.updated' order by id",
        [id],
      );
      const nameOf = (userId: string) => callers.find((who) => people[who].userId === userId);
      return rows.map(
        ({ actor_id, action, details }) => `${nameOf(actor_id)} ${action} ${details.from} ${details.to}`,
      );
    }

    async function eventsOf(id: string): Promise<string[]> {
      const { data } = (await people.author.get("/v1/events?limit=100")).body;
      return data
        .filter((event: { data: { product?: { id: string } } }) => event.data.product?.id === id)
        .map(({ type, data }: { type: string; data: { product: { reason?: string } } }) =>
          [type, data.product.reason].filter(Boolean).join(" "),
        )
        .reverse();
    }

    async function assertWorld(id: string, world: World): Promise<void> {
      const { state, owned, code, events, audited, emails } = world.model;
      const { rows } = await market.query("select status from products where id = $1", [toUuid("prod", id)]);
      assert.equal(rows[0].status, state);
      assert.deepEqual(await auditedMoves(id), audited, "each move is audited with its actor");
      assert.deepEqual(await eventsOf(id), events, "one event each, in order");
      assert.equal((await emailsToUser(market, people.author.userId)).length, emails);
      const isWithheld = code === "malicious" || code === "illegal";
      for (const who of callers) {
        const reply = await people[who].get(`/v1/products/${id}`);
        assert.equal(answerOf(reply), world.sees(who) ? "200" : "404 PRODUCT_NOT_FOUND", who);
        if (!world.sees(who)) continue;
        const isKeeper = who === "admin" || who === "author";
        const mayRead = isKeeper || (who === "buyer" && owned && !isWithheld);
        assert.equal(reply.body.data.content !== null, mayRead, `${who} reads`);
        const { moderation } = reply.body.data;
        if (code && isKeeper) assert.deepEqual([moderation.reasonCode, moderation.reason], [code, "So."]);
        if (!isKeeper) assert.equal(moderation, null);
      }
      const ran = answerOf(await run(people.buyer, { productId: id }));
      if (owned) assert.equal(ran, isWithheld ? "409 PRODUCT_UNAVAILABLE" : "200");
      else assert.equal(ran, state === "published" ? "403 UNAUTHORIZED" : "404 PRODUCT_NOT_FOUND");
    }

    /** Weights: frequent publishing and buying, rare deletion. Otherwise most histories would be short. */
    const weights: Record<string, number> = { publish: 8, buy: 5, approve: 5, delete: 1 };
    const whoMay = (action: string): Who => {
      if (action === "buy") return "buyer";
      return action === "give or take the badge" ? "admin" : ((contract[action]?.by as Who) ?? "author");
    };
    const step: fc.Arbitrary<Step> = fc
      .record({
        chance: fc.nat(2),
        anybody: fc.constantFrom(...callers),
        action: fc.oneof(
          ...actions.map((action) => ({ weight: weights[action] ?? 3, arbitrary: fc.constant(action) })),
        ),
        code: fc.constantFrom(...suspensionReasons),
      })
      .map(({ chance, anybody, ...rest }) => ({
        who: chance === 0 ? anybody : whoMay(rest.action),
        ...rest,
      }));

    test("random moves: declared states only, each move audited and published as an event", async () => {
      const made = new Set<string>();
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 12, maxLength: 40, size: "max" }), async (steps) => {
          people.author = await market.createUser({ name: "Author" });
          people.buyer = await market.createUser({ name: "Buyer" });
          const id = await createDraft(people.author);
          const world = new World(moderation);
          for (const one of steps) {
            const { state, verified } = world.model;
            const expected = world.answerTo(one);
            if (expected === "nothing") continue;
            const reply = await act(one, id, verified);
            assert.equal(answerOf(reply), expected, `${one.who}: ${one.action} in ${state}`);
            if (expected === "200" && requestedMoves.includes(one.action))
              assert.equal(reply.body.data.status, world.model.state);
            if (expected === "409 INVALID_STATE" && one.action !== "change") {
              const name = contract[one.action]!;
              const { current, allowed } = reply.body.error.details;
              assert.deepEqual([current, allowed], [state, name.from]);
            }
          }
          await assertWorld(id, world);
          for (const entry of world.model.audited) made.add(entry.split(" ").at(-3)!);
        }),
        { numRuns: isFullSize ? 30 : 3 },
      );
      // Three histories may happen to lack some moves.
      if (isFullSize) assert.ok(made.size >= (moderation ? 7 : 4), `the histories were dull: ${[...made]}`);
    });

    test("parallel moves: each starts where another ended, one linear history", async () => {
      people.author = await market.createUser({ name: "Author" });
      people.buyer = await market.createUser();
      const id = await createDraft(people.author);
      const moved = ["publish", "unpublish", "suspend", "reinstate", "withdraw", "reject", "delete"];
      const tries = Array.from({ length: 21 }, (_, at) => {
        const action = moved[at % moved.length]!;
        return { who: contract[action]!.by as Who, action, code: "spam" as const };
      });
      // Deletions come last, since a deleted product refuses every other move.
      const inOrder = tries.toSorted((a, b) => Number(a.action === "delete") - Number(b.action === "delete"));
      const replies = await Promise.all(inOrder.map((one) => act(one, id, false)));
      const done = replies.filter(({ status }) => status === 200).length;
      for (const reply of replies)
        assert.match(answerOf(reply), /^(200|409 INVALID_STATE|404 PRODUCT_NOT_FOUND)$/);
      const history = (await auditedMoves(id)).map((action) => action.split(" ").slice(2));
      assert.equal(history.length, done);
      let state = "draft";
      for (const [from, to] of history) {
        assert.equal(from, state);
        state = to!;
      }
      assert.equal(state, "deleted");
    });
  });
}

suite("parallel moves of a published product", () => {
  let market: Market;
  before(async () => {
    market = await openMarket();
  });
  after(() => market.close());

  test("twenty deletions: one succeeds, one event", async () => {
    const author = await market.createUser();
    const id = await createProduct(author);
    const replies = await Promise.all(Array.from({ length: 20 }, () => author.delete(`/v1/products/${id}`)));
    assert.deepEqual(replies.map(answerOf).sort(), ["200", ...Array(19).fill("404 PRODUCT_NOT_FOUND")]);
    const { data } = (await author.get("/v1/events?type=product.unpublished")).body;
    assert.equal(data.length, 1);
  });
});
