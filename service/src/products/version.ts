type Numbers = [number, number, number];

const parse = (version: string): Numbers => version.split(".").map(Number) as Numbers;

/** Whether semantic version `a` comes after `b`. */
export function isAfter(a: string, b: string): boolean {
  const [x, y] = [parse(a), parse(b)];
  const at = x.findIndex((number, index) => number !== y[index]);
  return at >= 0 && x[at]! > y[at]!;
}

export function nextMinor(version: string): string {
  const [major, minor] = parse(version);
  return `${major}.${minor + 1}.0`;
}
