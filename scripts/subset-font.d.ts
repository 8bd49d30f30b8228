/** The part of the package that scripts/subset-font.ts uses; it has no types of its own. */
declare module "subset-font" {
  interface Options {
    targetFormat: "woff2";
    variationAxes: Record<string, { min: number; max: number }>;
    keepFeatures: string[];
  }
  export default function subsetFont(font: Buffer, characters: string, options: Options): Promise<Buffer>;
}
