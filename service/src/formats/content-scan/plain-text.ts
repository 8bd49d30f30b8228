/** Whether a text has only the visible characters of ASCII, tabs and line breaks: nothing is hidden, styled or confusable in it. */
export const isPlainText = (text: string): boolean => /^[\t\n\x20-\x7e]*$/.test(text);
