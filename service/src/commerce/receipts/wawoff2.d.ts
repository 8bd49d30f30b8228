declare module "wawoff2/build/decompress_binding.js" {
  const woff2: {
    onRuntimeInitialized: () => void;
    /** false: not a WOFF2 file. */
    decompress(bytes: Uint8Array): Uint8Array | false;
  };
  export default woff2;
}
