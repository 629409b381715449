// Bundles the extension into dist/extension.js; `vscode` is the editor's own.
import { build } from "esbuild";

await build({
  entryPoints: ["extension/src/extension.ts"],
  outfile: "dist/extension.js",
  bundle: true,
  platform: "node",
  format: "cjs",
  target: "node20",
  external: ["vscode"],
  minify: true,
  logLevel: "warning",
});
