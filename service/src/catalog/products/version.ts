type Numbers = [number, number, number];

export const numbersOf = (version: string): Numbers => version.split(".").map(Number) as Numbers;

/** Whether semantic version `a` comes after `b`. */
export function isAfter(a: string, b: string): boolean {
  const [x, y] = [numbersOf(a), numbersOf(b)];
  const at = x.findIndex((number, index) => number !== y[index]);
  return at >= 0 && x[at]! > y[at]!;
}

export function nextMinor(version: string): string {
  const [major, minor] = numbersOf(version);
  return `${major}.${minor + 1}.0`;
}
