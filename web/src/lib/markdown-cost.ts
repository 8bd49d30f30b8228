/** A parser compares every mark of emphasis, every bracket and every cell of a paragraph with those before it. */
const MARKS = /[*_~[|`]/g;
/** Sum of the squares of the marks of each paragraph: about a second. */
const MOST_COMPARED = 16_000_000;
/** Quotes and lists within each other, by marks or by indentation. */
const DEEPLY_NESTED =
  /^(?:[ \t]*(?:>|[-+*][ \t]|\d{1,9}[.)][ \t])){40}|^[ \t]{120,}(?:>|[-+*][ \t]|\d{1,9}[.)][ \t])/m;

/** Whether formatting the text would block the page: `*a_` ten thousand times takes twenty seconds. */
export const isCostly = (text: string): boolean =>
  DEEPLY_NESTED.test(text) ||
  text.split(/\n[ \t]*\n/).reduce((sum, paragraph) => sum + (paragraph.match(MARKS)?.length ?? 0) ** 2, 0) >
    MOST_COMPARED;
