import { type CSSVariablesResolver, createTheme, type MantineColorsTuple } from "@mantine/core";

/** Colors of the design that Mantine's components take by name: `color="good"`. */
const hues = ["accent", "good", "warning", "bad"] as const;

/** Mantine's variables of a color, and the token of tokens.css that each takes. The second part follows the color's name. */
const variants = {
  light: "-tint",
  "light-hover": "-tint",
  "light-color": "",
  text: "",
  outline: "",
  "outline-hover": "-tint",
  filled: "-fill",
};

/** Tokens follow the color scheme by themselves (`light-dark()`), so that both schemes have the same values here. */
const variables: Record<string, string> = {
  ...Object.fromEntries(
    hues.flatMap((hue) =>
      Object.entries(variants).map(([variant, token]) => [
        `--mantine-color-${hue}-${variant}`,
        `var(--${hue}${token})`,
      ]),
    ),
  ),
  "--mantine-color-accent-filled-hover": "var(--accent-hover)",
  "--mantine-color-body": "var(--ground)",
  "--mantine-color-text": "var(--ink)",
  "--mantine-color-dimmed": "var(--soft)",
  "--mantine-color-placeholder": "var(--faint)",
  "--mantine-color-anchor": "var(--accent)",
  "--mantine-color-error": "var(--bad)",
  "--mantine-color-success": "var(--good)",
  "--mantine-color-bright": "var(--ink)",
  "--mantine-color-default": "var(--paper)",
  "--mantine-color-default-hover": "var(--sunken)",
  "--mantine-color-default-color": "var(--ink)",
  "--mantine-color-default-border": "var(--edge)",
  "--mantine-color-disabled": "var(--sunken)",
  "--mantine-color-disabled-color": "var(--faint)",
  "--mantine-color-disabled-border": "var(--line)",
};

export const cssVariablesResolver: CSSVariablesResolver = () => ({
  variables: {},
  light: variables,
  dark: variables,
});

const shades = (text: string) => text.split(" ") as unknown as MantineColorsTuple;
const accent = shades("#e9ebfc #ccd2fa #a6b3ff #7080ff #6475f6 #4657e6 #3546d8 #2637c8 #1a2799 #131c66");
const good = shades("#e3f2e8 #b9e3c8 #7fd3a0 #4fb27a #2f9360 #1f7a4b #1b6f43 #17653a #10492a #0b331d");
const warning = shades("#fbefd6 #f6d798 #edbb62 #d29430 #b07410 #8f5a00 #855200 #7a4b00 #573500 #3a2400");
const bad = shades("#fce9e7 #ffcdc8 #ffa59c #f2756a #dc4c42 #c4352c #bb2c23 #b0231b #871b14 #5c120d");
const dark = shades("#efedf3 #aba8b6 #918e9d #73717f #2e2e37 #222229 #19191f #111115 #0b0b0e #060608");

export const theme = createTheme({
  colors: { accent, good, warning, bad, dark },
  primaryColor: "accent",
  primaryShade: { light: 7, dark: 5 },
  black: "#17161b",
  fontFamily: '"Inter Variable", "Inter Fallback", system-ui, sans-serif',
  fontFamilyMonospace: "var(--mono)",
  fontSizes: { xs: "0.75rem", sm: "0.8125rem", md: "0.875rem", lg: "1rem", xl: "1.125rem" },
  lineHeights: { xs: "1rem", sm: "1.25rem", md: "1.25rem", lg: "1.625rem", xl: "1.75rem" },
  headings: {
    fontWeight: "620",
    textWrap: "balance",
    sizes: {
      h1: { fontSize: "1.5rem", lineHeight: "1.875rem" },
      h2: { fontSize: "1.25rem", lineHeight: "1.625rem" },
      h3: { fontSize: "0.875rem", lineHeight: "1.25rem", fontWeight: "600" },
    },
  },
  spacing: { xs: "4px", sm: "8px", md: "12px", lg: "20px", xl: "32px" },
  radius: { xs: "4px", sm: "6px", md: "8px", lg: "10px", xl: "14px" },
  defaultRadius: "md",
  shadows: { md: "var(--overlay)" },
  breakpoints: { xs: "22.5em", sm: "48em", md: "64em", lg: "80em", xl: "100em" },
  cursorType: "pointer",
  respectReducedMotion: true,
  components: {
    Button: { defaultProps: { variant: "default" } },
    Badge: { defaultProps: { variant: "light", tt: "none", radius: "xs" } },
    Paper: { defaultProps: { withBorder: true, radius: "lg" } },
    Modal: { defaultProps: { radius: "xl" } },
  },
});
