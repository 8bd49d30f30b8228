import type { Review } from "@stoa/sdk";
import type { Command } from "commander";
import { wholeNumber } from "../command.ts";
import { time } from "../format.ts";
import type { Column } from "../output.ts";
import { listCommand, objectCommand } from "../resource.ts";

const columns: Column<Review>[] = [
  { field: "id", title: "Review" },
  { field: "rating", title: "Stars" },
  { field: "author.name", title: "By" },
  { field: "comment", title: "Comment" },
  { field: "reply", title: "Reply", format: ({ reply }) => reply?.comment ?? "" },
  { field: "createdAt", title: "Written", format: ({ createdAt }) => time(createdAt) },
];

export default function define(command: Command): void {
  listCommand<Review, { rating?: number }>(command, {
    name: "list <product>",
    description: "List the reviews of a product",
    options: (list) => list.option("--rating <stars>", "only those with so many stars", wholeNumber(1)),
    examples: ["stoa reviews list prod_… --rating 1"],
    columns,
    open: (stoa, page, { rating }, [product = ""]) => stoa.reviews.list(product, { ...page, rating }),
  });
  objectCommand<Review, { rating: number; comment?: string }>(command, {
    name: "create <product>",
    description: "Review a product that you bought",
    options: (create) =>
      create
        .requiredOption("--rating <stars>", "1 to 5", wholeNumber(1))
        .option("--comment <text>", "what others should know"),
    examples: ['stoa reviews create prod_… --rating 5 --comment "Saves me an hour a day."'],
    columns,
    call: (stoa, { rating, comment }, [product = ""]) =>
      stoa.reviews.create(product, { rating, ...(comment !== undefined && { comment }) }),
  });
  objectCommand<Review>(command, {
    name: "reply <product> <review> <text>",
    description: "Answer a review of your product",
    examples: ['stoa reviews reply prod_… rev_… "Fixed in 1.2.0."'],
    columns,
    call: (stoa, _options, [product = "", review = "", comment = ""]) =>
      stoa.reviews.reply(product, review, { comment }),
  });
  objectCommand(command, {
    name: "delete <product> <review>",
    description: "Delete your review",
    examples: ["stoa reviews delete prod_… rev_…"],
    columns: [],
    call: (stoa, _options, [product = "", review = ""]) => stoa.reviews.delete(product, review),
    message: () => "Deleted.",
  });
}
