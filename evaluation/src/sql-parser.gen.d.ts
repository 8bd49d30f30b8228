export interface SqlParser {
  /** @throws if the text is no MySQL statement */
  parse(sql: string): { tableList: string[]; columnList: string[] };
}

export function createParser(): SqlParser;
