// Installs the tarball of `npm run tarball` with npm into a new project, starts its command, and compiles and runs a
// program against it. Installs the client's tarball into another one. test/process/package checks more, without a registry.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const project = fileURLToPath(new URL("..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "hop-gateway-install-"));
const { devDependencies: versions } = JSON.parse(readFileSync(join(project, "package.json"), "utf8"));
const run = (command, ...args) =>
  execFileSync(command, args, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
const command = (name) => join(folder, "node_modules/.bin", name);

try {
  execFileSync(process.execPath, [join(project, "packaging/tarball.js"), folder], { stdio: "inherit" });
  const tarball = readdirSync(folder).find((name) => name.endsWith(".tgz"));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  const extraPackages = ["typescript", "@types/node"];
  const began = Date.now();
  run(
    "npm",
    "install",
    "--omit=optional",
    "--no-audit",
    "--no-fund",
    `./${tarball}`,
    ...extraPackages.map((name) => `${name}@${versions[name]}`),
  );
  const kilobytes = Number(run("du", "-sk", "node_modules").split("\t")[0]);
  console.log(`installed in ${Math.round((Date.now() - began) / 1_000)} s, ${Math.round(kilobytes / 1_024)} MB`);
  if (existsSync(join(folder, "node_modules/hardhat"))) throw new Error("the package installs Hardhat");

  const compilerOptions = { module: "NodeNext", target: "ES2023", strict: true, types: ["node"], outDir: "out" };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
  copyFileSync(join(project, "test/process/package/program.ts"), join(folder, "program.ts"));
  run(command("tsc"));

  const environment = {
    PATH: process.env.PATH,
    HOST: "127.0.0.1",
    PORT: "0",
    METRICS_PORT: "0",
    ASSETS_URL: "off",
    EXPLORER_API_URL: "off",
  };
  const service = spawn(command("hop-gateway"), { env: environment, stdio: ["ignore", "pipe", "inherit"] });
  try {
    const [line] = await once(createInterface(service.stdout), "line");
    const output = run(process.execPath, "out/program.js", line.replace("hop-gateway listens on ", ""));
    const reasons = '"MISSING_PARAMETER","INVALID_PARAMETER","INDEX_REQUIRED"';
    if (output !== `["ethereum","ethereum",${reasons},"3.1.0"]`)
      throw new Error(`unexpected output of the program: ${output}`);
    console.log("the installed command serves requests of a compiled program");
  } finally {
    service.kill();
  }
  installClient(join(folder, "client"));
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** Installs the client alone in an empty project, and loads it. */
function installClient(place) {
  execFileSync(process.execPath, [join(project, "packaging/client.js"), "pack", place], { stdio: "inherit" });
  const [tarball] = readdirSync(place);
  writeFileSync(join(place, "package.json"), JSON.stringify({ type: "module" }));
  const options = { cwd: place, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] };
  execFileSync("npm", ["install", "--no-audit", "--no-fund", `./${tarball}`], options);
  const kilobytes = Number(execFileSync("du", ["-sk", "node_modules"], options).split("\t")[0]);
  console.log(`the client is installed with ${kilobytes} KB`);
  if (kilobytes > 4_000) throw new Error("the client installs more than 4 MB");
  const program = 'console.log(typeof (await import("hop-gateway-client")).createBridgeClient)';
  const output = execFileSync(process.execPath, ["--input-type=module", "-e", program], options);
  if (output !== "function\n") throw new Error(`the client does not load: ${output}`);
}
