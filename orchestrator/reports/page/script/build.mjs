// Builds what is shipped in ../assets: the charts, the page's own script, and the licences of what is in them.
import { build } from "esbuild";
import { readFile, writeFile } from "node:fs/promises";

const target = process.argv[2] ?? "../assets";
const shared = { bundle: true, format: "iife", target: "es2022", charset: "utf8", legalComments: "none", minify: true };
await build({
  ...shared,
  entryPoints: ["charts.js"],
  globalName: "DevbenchCharts",
  outfile: `${target}/charts.js`,
});
await build({ ...shared, entryPoints: ["src/boot.js"], outfile: `${target}/page.js` });

const licences = [
  ["echarts", "LICENSE"],
  ["echarts", "NOTICE"],
  ["zrender", "LICENSE"],
  ["tslib", "LICENSE.txt"],
];
const parts = ["charts.js holds parts of the packages below, each under its own licence.\n"];
for (const [name, file] of licences) {
  const { version } = JSON.parse(await readFile(`node_modules/${name}/package.json`, "utf8"));
  parts.push(`==== ${name} ${version}: ${file}\n\n${(await readFile(`node_modules/${name}/${file}`, "utf8")).trim()}\n`);
}
await writeFile(`${target}/charts.LICENSE.txt`, parts.join("\n"));
