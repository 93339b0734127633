// Installs what `npm run tarball` makes as somebody else does, by npm into a project of their own; then its command
// serves, and their program compiles and asks it. test/process/package looks closer, without a registry.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const project = fileURLToPath(new URL("..", import.meta.url));
const place = mkdtempSync(join(tmpdir(), "hop-gateway-install-"));
const { devDependencies: versions } = JSON.parse(readFileSync(join(project, "package.json"), "utf8"));
const run = (command, ...words) =>
  execFileSync(command, words, { cwd: place, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
const command = (name) => join(place, "node_modules/.bin", name);

try {
  execFileSync(process.execPath, [join(project, "packaging/tarball.js"), place], { stdio: "inherit" });
  const tarball = readdirSync(place).find((name) => name.endsWith(".tgz"));
  writeFileSync(join(place, "package.json"), JSON.stringify({ type: "module" }));
  const others = ["typescript", "@types/node"];
  const began = Date.now();
  run(
    "npm",
    "install",
    "--omit=optional",
    "--no-audit",
    "--no-fund",
    `./${tarball}`,
    ...others.map((name) => `${name}@${versions[name]}`),
  );
  const kilobytes = Number(run("du", "-sk", "node_modules").split("\t")[0]);
  console.log(`installed in ${Math.round((Date.now() - began) / 1_000)} s, ${Math.round(kilobytes / 1_024)} MB`);
  if (existsSync(join(place, "node_modules/hardhat"))) throw new Error("it brings Hardhat");

  const compilerOptions = { module: "NodeNext", target: "ES2023", strict: true, types: ["node"], outDir: "out" };
  writeFileSync(join(place, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
  for (const each of ["examples/connect.ts", "examples/fetch.ts", "test/process/package/program.ts"]) {
    copyFileSync(join(project, each), join(place, basename(each)));
  }
  run(command("tsc"));

  const environment = {
    PATH: process.env.PATH,
    HOST: "127.0.0.1",
    PORT: "0",
    ASSETS_URL: "off",
    EXPLORER_API_URL: "off",
  };
  const service = spawn(command("hop-gateway"), { env: environment, stdio: ["ignore", "pipe", "inherit"] });
  try {
    const [line] = await once(createInterface(service.stdout), "line");
    const told = run(process.execPath, "out/program.js", line.replace("hop-gateway listens on ", ""));
    if (told !== '["ethereum","ethereum","MISSING_PARAMETER","3.1.0"]') throw new Error(`the program told ${told}`);
    console.log("its command serves, and a program compiles and asks it");
  } finally {
    service.kill();
  }
} finally {
  rmSync(place, { recursive: true, force: true });
}
