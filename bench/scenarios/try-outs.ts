import { GOOD_KEY } from "@stoa/service/test/provider-server.ts";
import { type Calls, makeCalls } from "../calls.ts";
import { clientOf } from "../client.ts";
import type { Options } from "../options.ts";
import { startScript } from "../processes.ts";
import { directly } from "../prompt-calls.ts";
import { publishProduct } from "../publishing.ts";
import { median, quantilesOf } from "../quantile.ts";
import { comparedWithAim, ms, type Report } from "../report.ts";
import { openShop, type Shop } from "../shop.ts";

const ROUNDS = 3;
const [TRIES, AT_ONCE, WARM_UP] = [60, 10, 2];
/** A model of usual speed: its first word takes that long, each further one this long. */
const [FIRST_WORD_MS, WORD_MS] = [800, 25];
const MODEL = `text-${FIRST_WORD_MS}-${WORD_MS}`;
const AIM_MS = 3_000;

const PROMPT = `You help people to plan a garden. ${"Ask for the soil, the light and the time that they have. Prefer plants that come back each year, and name one that suits a beginner. ".repeat(8)}The question: {{topic}}`;

/** Time until a guest sees the first words of a try, which the leak guard holds back until it knows that they repeat nothing. */
export async function measureTryOuts(options: Options): Promise<Report> {
  const shop = await openShop(options);
  const [providerUrl] = await startScript(new URL("../ai-provider.ts", import.meta.url), []).waitForLine(
    /^http.*/,
  );
  const rounds: Record<"direct" | "tried", number[]>[] = [];
  for (let n = 0; n < ROUNDS; n++) {
    const direct = await makeCalls(loadOf(directly(providerUrl!).call(MODEL, true)));
    const tried = await makeCalls(loadOf(await openTryOut(shop, providerUrl!)));
    rounds.push({ direct: direct.times, tried: tried.times });
  }
  return reportOf(rounds);
}

const loadOf = (call: Pick<Calls, "url" | "headers" | "body">): Calls => ({
  ...call,
  ...{ atOnce: AT_ONCE, amount: TRIES, warmUp: WARM_UP, spreadMs: FIRST_WORD_MS, until: "first word" },
  warmUpBody: call.body,
});

/** A product of its own for each round: a visitor may try one at most a hundred times in a day. */
async function openTryOut({ origin, buyers, visitor }: Shop, baseUrl: string) {
  const seller = clientOf(origin, buyers[2]!);
  const productId = await publishProduct(seller, {
    ...{ type: "PROMPT", title: "A garden to try", description: "Plans a garden.", category: "writing" },
    ...{ price: 3, currency: "USD", compatibility: ["openai"], content: PROMPT },
  });
  const { id: apiKeyId } = await seller.post<{ id: string }>("/v1/ai/keys", {
    ...{ provider: "openai-compatible", name: "bench", key: GOOD_KEY, baseUrl },
  });
  await seller.put(`/v1/products/${productId}/try-out`, {
    ...{ apiKeyId, model: MODEL, maxPerDay: 1_000, maxPerVisitorPerDay: 100, monthlyBudget: 100 },
  });
  return {
    url: `${origin}/v1/products/${productId}/try`,
    headers: { cookie: visitor },
    body: JSON.stringify({ variables: { topic: "A balcony to the north" }, stream: true }),
  };
}

function reportOf(rounds: Record<"direct" | "tried", number[]>[]): Report {
  const of = (way: "direct" | "tried", part: "p50" | "p95" | "p99") =>
    median(rounds.map((round) => quantilesOf(round[way])[part]));
  const row = (what: string, way: "direct" | "tried", aim: string[]) => [
    ...[what, ms(of(way, "p50")), ms(of(way, "p95")), ms(of(way, "p99"))],
    ...aim,
  ];
  const [, ...aim] = comparedWithAim("", `p99 ≤ ${AIM_MS / 1_000} s`, of("tried", "p99") <= AIM_MS);
  return {
    columns: ["first words of an answer", "p50 ms", "p95 ms", "p99 ms", "aim", "met"],
    rows: [row("of the provider, directly", "direct", ["", ""]), row("of a guest's try", "tried", aim)],
    notes: [
      `${ROUNDS} rounds in turn with ${TRIES} answers each, ${AT_ONCE} at a time; medians of the rounds. The provider sends its first word after ${FIRST_WORD_MS} ms and then one every ${WORD_MS} ms. A try waits for more of them, because the leak guard shows no word before it knows that it belongs to no piece of the prompt.`,
    ],
  };
}
