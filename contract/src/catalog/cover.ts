const PIGMENTS = [
  // main, dark, mid, light, spark
  "#2336B8 #141D6B #5670F2 #DCE2FF #F5B83D",
  "#0F6259 #083D3B #2FA392 #D3EFE6 #F2905F",
  "#E3A53A #9C5A0C #F4CC78 #FFF3D6 #2336B8",
  "#C6462B #7A2013 #EF8463 #FFE3D5 #1D2B8C",
  "#6B2A57 #401536 #B4608F #F7DCEB #F3B84A",
  "#D9CFB9 #4B463C #B3A585 #FBF8EF #C6462B",
  "#27323F #121A23 #5B7289 #DFE7EE #EBB54B",
  "#7CA6C9 #24486C #B2D0E7 #F1F8FD #D9542F",
  "#D58892 #86303F #F0BEC1 #FFF1EF #1E6058",
  "#737F38 #3B441A #AFB866 #F2F4D6 #8B2F60",
]; // Egyptian blue, malachite, ochre, cinnabar, Tyrian purple, limestone, slate, azurite, madder, olive
export function coverSvg(id: string, type: "PROMPT" | "WORKFLOW"): string {
  let seed = 2166136261; // FNV-1a of the id seeds mulberry32
  for (const character of id) seed = Math.imul(seed ^ character.charCodeAt(0), 16777619);
  const pick = (below: number) => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
  const [main = "", dark = "", mid = "", light = "", spark = ""] = (PIGMENTS[pick(10)] ?? "").split(" ");
  // Light, dark, or (twice as likely) the pigment itself as the ground.
  const [ground = "", deep = "", pale = ""] =
    [
      [light, dark, main],
      [dark, main, light],
      [main, dark, light],
      [main, dark, light],
    ][pick(4)] ?? [];
  const [a, b, flip] = [pick(3), pick(4), pick(2)];
  const paint = (n: number) => [deep, mid, pale][n % 3] ?? pale;
  const times = (count: number, draw: (n: number) => string) =>
    Array.from({ length: count }, (_, n) => draw(n)).join("");
  const disc = (x: number, y: number, r: number, fill: string) =>
    `<circle cx="${x}" cy="${y}" r="${r}" fill="${fill}"/>`;
  const area = (d: string, fill: string) => `<path d="${d}Z" fill="${fill}"/>`;
  const line = (d: string, width: number, color: string) =>
    `<path d="${d}" fill="none" stroke="${color}" stroke-width="${width}"/>`;
  const column = (x: number, w: number, top: number, fill: string) =>
    area(`M${x} 200V${top + w / 2}a${w / 2} ${w / 2} 0 0 1 ${w} 0V200`, fill);
  const prompts = [
    () =>
      disc(300 - 20 * b, 46, 22, spark) +
      times(5, (n) =>
        column(40 + 30 * a + 22 * n, 200 - 44 * n, 24 + 22 * n, [deep, mid, pale, ground, deep][n] ?? deep),
      ), // nested arches
    () =>
      disc(206 + 18 * a, 116, 42, spark) +
      area(`M0 ${4 + 8 * b}L320 84V96L0 ${42 + 8 * b}`, pale) +
      area("M0 182L320 164V200H0", deep) + // colonnade in perspective
      times(6, (n) => {
        const [x = 0, w = 0] =
          [
            [41, 46],
            [110, 36],
            [165, 28],
            [209, 22],
            [245, 18],
            [274, 14],
          ][n] ?? [];
        return line(`M${x} ${48 + 8 * b + x * (0.17 - 0.025 * b)}V${182 - x / 18}`, w, n % 2 ? mid : pale);
      }),
    () =>
      disc(110 + 50 * a, 108, 74, spark) +
      times(8, (n) => line(`M${20 + 40 * n} 0V200`, 8 + 4 * ((n * (b + 1)) % 5), deep)) +
      line("M0 178H320", 44, mid), // sun between columns
    () =>
      times(7, (n) => column(16 + 42 * n, 36, 34 + pick(7) * 19, paint(n + a))) +
      disc(34 + 42 * pick(7), 24, 14, spark), // columns of many heights
    () =>
      times(5, (n) => disc(90 + 70 * a, 212, 188 - 36 * n, [deep, mid, ground, pale, spark][n] ?? spark)) +
      times(2 + b, (n) => disc(30 + 26 * n, 30, 8, pale)), // amphitheatre
  ];
  const workflow = () => {
    // stages from left to right; a digit is the number of parallel steps
    const stages = ["121", "131", "1221", "1331", "1121", "1211", "1311", "1131"][pick(8)] ?? "121";
    const at = (n: number) => 44 + (n * 232) / (stages.length - 1);
    const lanes = (n: number) => [[100], [54, 146], [42, 100, 158]][Number(stages[n]) - 1] ?? [];
    const links = times(stages.length - 1, (n) =>
      lanes(n)
        .flatMap((from, l) =>
          lanes(n + 1).map((to, m) =>
            lanes(n).length === lanes(n + 1).length && l !== m
              ? ""
              : line(
                  `M${at(n)} ${from}C${(at(n) + at(n + 1)) / 2} ${from} ${(at(n) + at(n + 1)) / 2} ${to} ${at(n + 1)} ${to}`,
                  12,
                  paint(l + m + a),
                ),
          ),
        )
        .join(""),
    );
    const last = stages.length - 1;
    return (
      times(9, (n) => line(`M${32 * n + 32} 0V200`, 1, mid)) +
      line("M0 100H44M276 100H320", 12, pale) +
      links +
      times(stages.length, (n) =>
        lanes(n)
          .map((y) =>
            n === last
              ? disc(at(n), y, 26, pale) + disc(at(n), y, 16, spark)
              : disc(at(n), y, 20, n ? deep : pale) + disc(at(n), y, 10, n ? pale : deep),
          )
          .join(""),
      )
    );
  };
  const art = type === "WORKFLOW" ? workflow() : prompts[pick(5)]?.();
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 200" width="320" height="200" preserveAspectRatio="xMidYMid slice">${area("M0 0H320V200H0", ground)}<g${flip && type === "PROMPT" ? ' transform="matrix(-1 0 0 1 320 0)"' : ""}>${art}</g></svg>`;
}
