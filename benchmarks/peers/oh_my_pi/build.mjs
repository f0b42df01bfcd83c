// The package is TypeScript for Bun: its dialects bundled into one module that node runs.
import { readFile } from "node:fs/promises";
import { build } from "esbuild";

const forNode = {
  name: "for-node",
  setup({ onLoad, onResolve }) {
    // Bun imports names from JSON; node's way with `type: "json"` has the whole object only.
    onLoad({ filter: /@oh-my-pi.*\.ts$/ }, async ({ path }) => ({
      contents: (await readFile(path, "utf8")).replaceAll(/ with \{ type: "json" \}/g, ""),
      loader: "ts",
    }));
    // Nothing that a scanner calls, but imported beside what it does.
    onResolve({ filter: /^(bun(:.*)?|@oh-my-pi\/pi-natives)$/ }, ({ path }) => ({ path, namespace: "absent" }));
    onLoad({ filter: /.*/, namespace: "absent" }, () => ({
      contents: "module.exports = new Proxy({}, { get: () => class {} });",
    }));
  },
};

await build({
  entryPoints: ["node_modules/@oh-my-pi/pi-ai/src/dialect/factory.ts"],
  bundle: true,
  platform: "node",
  format: "esm",
  banner: { js: "globalThis.Bun ??= { env: process.env };" },
  loader: { ".md": "text" },
  logLevel: "error",
  plugins: [forNode],
  outfile: "dialects.mjs",
});
