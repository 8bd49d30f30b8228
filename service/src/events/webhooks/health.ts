import { findAccount } from "../../accounts/people/accounts.ts";
import type { Context } from "../../core/context.ts";
import { DAY_MS, daysAfter } from "../../core/dates.ts";
import type { Tx } from "../../platform/db/database.ts";
import { sendMail } from "../../platform/email/mail.ts";
import { eachInTurn } from "../../platform/jobs/in-turn.ts";
import { lockLanes } from "./delivery-queries.ts";
import { updateEndpoint } from "./endpoint-queries.ts";
import {
  type FailingRow,
  findFailing,
  findToDisable,
  listFailing,
  listGivenUp,
  takeGivenUp,
} from "./health-queries.ts";
import { failingLetter, givenUpLetter, goneLetter, switchedOffLetter } from "./letters.ts";
import { endWaiting } from "./waiting-queries.ts";

/** Its owner hears of it on these days without a success, and on the last one it is switched off. */
const TOLD_DAYS = [1, 3];
const SWITCHED_OFF_DAY = 5;
/** Fewer may be bad luck with a few events. */
const GIVEN_UP_AT_LEAST = 10;

/** The receiver at an address answered 410: it wants nothing more. In the transaction that records the answer. */
export async function disableGone(ctx: Context, tx: Tx, endpointId: string, url: string): Promise<void> {
  const endpoint = await findToDisable(tx, endpointId, url);
  if (endpoint) await switchOff(ctx, tx, endpoint, "gone");
}

/** Tells owners of endpoints that take nothing, and switches off those that have not for days: each once, whoever asks. */
export async function judgeFailing(ctx: Context): Promise<void> {
  const since = daysAfter(ctx.now(), -TOLD_DAYS[0]!);
  await eachInTurn(
    await listFailing(ctx.db, since),
    ({ id }) => ctx.db.transaction().execute((tx) => judgeOne(ctx, tx, id)),
    ({ id }, err) =>
      ctx.log.error(
        { endpoint: id, err },
        "a webhook endpoint could not be judged; the next round tries again",
      ),
  );
  await reportGivenUp(ctx);
}

/** Reports deliveries that were given up by email, at most once a day for each endpoint. */
async function reportGivenUp(ctx: Context): Promise<void> {
  const toldBefore = daysAfter(ctx.now(), -1);
  const report = (id: string) =>
    ctx.db.transaction().execute(async (tx) => {
      await lockLanes(tx, [id]);
      const found = await takeGivenUp(tx, id, toldBefore, ctx.now());
      if (found) await tell(ctx, tx, found, givenUpLetter(found));
    });
  await eachInTurn(
    await listGivenUp(ctx.db, toldBefore),
    ({ id }) => report(id),
    ({ id }, err) =>
      ctx.log.error(
        { endpoint: id, err },
        "deliveries that were given up could not be reported; the next round tries again",
      ),
  );
}

async function judgeOne(ctx: Context, tx: Tx, id: string): Promise<void> {
  await lockLanes(tx, [id]);
  const endpoint = await findFailing(tx, id);
  if (!endpoint) return;
  const days = (ctx.now().getTime() - endpoint.failingSince.getTime()) / DAY_MS;
  if (days >= SWITCHED_OFF_DAY && endpoint.failedDeliveries >= GIVEN_UP_AT_LEAST) {
    await switchOff(ctx, tx, endpoint, "failing");
    return;
  }
  const day = TOLD_DAYS.findLast((one) => days >= one);
  if (day === undefined || endpoint.toldDay >= day) return;
  await updateEndpoint(tx, id, { told_day: day, updated_at: ctx.now() });
  await tell(ctx, tx, endpoint, failingLetter(endpoint));
}

/** What waits is skipped, so that it can be recovered. The lane is locked. */
async function switchOff(
  ctx: Context,
  tx: Tx,
  endpoint: Pick<FailingRow, "id" | "userId" | "url">,
  why: "gone" | "failing",
): Promise<void> {
  await updateEndpoint(tx, endpoint.id, { disabled_by: why, updated_at: ctx.now() });
  await endWaiting(tx, endpoint.id, "skipped", ctx.now());
  await tell(ctx, tx, endpoint, why === "gone" ? goneLetter(endpoint) : switchedOffLetter(endpoint));
}

async function tell(
  ctx: Context,
  tx: Tx,
  { userId }: Pick<FailingRow, "userId">,
  letter: ReturnType<typeof goneLetter>,
): Promise<void> {
  const account = await findAccount(tx, userId);
  if (account && !account.closedAt) await sendMail(ctx, tx, account.email, letter);
}
