/** The part of its WebAssembly module that we use. */
declare module "wawoff2/build/decompress_binding.js" {
  const woff2: {
    onRuntimeInitialized: () => void;
    /** false: the bytes are no WOFF2. */
    decompress(bytes: Uint8Array): Uint8Array | false;
  };
  export default woff2;
}
