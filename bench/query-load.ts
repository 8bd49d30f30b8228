import { clientOf } from "./client.ts";
import type { Lane } from "./load.ts";
import { type Measured, measure } from "./measure.ts";
import { median } from "./quantile.ts";
import type { Card, Kind, Question } from "./questions.ts";
import type { Shop } from "./shop.ts";

const WARM_UP = 40;
const REQUESTS = 400;
/** Slow queries are sent fewer times. */
const SECONDS = 20;
export const AT_ONCE = 8;
const LOOKED_AT = 25;

export interface QueryMeasurement {
  name: string;
  alone: Measured;
  together: Measured;
  /** The number of different requests that were sent one at a time. */
  different: number;
  /** For the checked answers: the median of their totals, and the share of empty ones. */
  total: number | null;
  empty: number;
  /** The number of errors among them. */
  refused: number;
}

/** Measures one kind of query, one at a time and in parallel; null: unsupported. */
export async function measureQueries(shop: Shop, kind: Kind): Promise<QueryMeasurement | null> {
  if (!(await isKnown(shop, kind.questions[0]!))) return null;
  const send = (questions: Question[], connections: number) =>
    measure(shop, {
      seconds: SECONDS,
      amount: questions.length,
      connections,
      lanes: dealt(shop, questions, connections),
      tolerant: true,
    });
  await send(sliceOf(kind, 0, WARM_UP), 1);
  const questions = sliceOf(kind, WARM_UP, REQUESTS);
  const alone = await send(questions, 1);
  const together = await send(sliceOf(kind, WARM_UP + REQUESTS, REQUESTS), AT_ONCE);
  const different = new Set(questions.slice(0, alone.requests).map(({ path }) => path)).size;
  return { name: kind.name, alone, together, different, ...(await checkResponses(shop, kind, questions)) };
}

/** A slice that wraps around. */
const sliceOf = ({ questions }: Kind, from: number, count: number): Question[] =>
  Array.from({ length: count }, (_, at) => questions[(from + at) % questions.length]!);

function dealt({ reader }: Shop, questions: Question[], connections: number): Lane[] {
  const headers = { authorization: `Bearer ${reader}` };
  return Array.from({ length: connections }, (_, lane) =>
    questions
      .filter((_question, at) => at % connections === lane)
      .map(({ path }) => ({ method: "GET", path, headers })),
  );
}

async function isKnown({ origin, reader }: Shop, { path }: Question): Promise<boolean> {
  const [plain] = path.split("?");
  const reply = await fetch(`${origin}${plain}`, { headers: { authorization: `Bearer ${reader}` } });
  await reply.body?.cancel();
  return reply.status !== 404;
}

interface Answer {
  data: Card[] | object;
  meta: { total?: number };
}

/** Checks some answers after the measurement, since wrong answers may be fast. */
async function checkResponses({ origin, reader }: Shop, { name, mayBeEmpty }: Kind, questions: Question[]) {
  const client = clientOf(origin, reader);
  const totals: number[] = [];
  let empty = 0;
  let refused = 0;
  const looked = questions.slice(0, LOOKED_AT);
  for (const { path, fits } of looked) {
    const answer = await client.get<Answer>(path).catch(() => null);
    if (!answer) refused++;
    if (!answer) continue;
    const { data, meta } = answer;
    if (Object.keys(data).length === 0) empty++;
    if (meta.total !== undefined) totals.push(meta.total);
    if (fits && !fits(data as Card[]))
      throw new Error(`${path} answers something else than it was asked for`);
  }
  if (empty === looked.length && !mayBeEmpty) throw new Error(`every answer is empty: ${name}`);
  return { total: totals.length === 0 ? null : median(totals), empty: empty / looked.length, refused };
}
