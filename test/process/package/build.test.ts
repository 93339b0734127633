import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  copyFile,
  cp,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  realpath,
  rename,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { useTemporaryFolder } from "../../support/temporary-folder.js";

// Runs packaging/build.js in small projects with the compiler of this one. The script of their pages waits for a file, so
// that the tests decide when a build ends.

const project = fileURLToPath(new URL("../../..", import.meta.url));
const folder = useTemporaryFolder();
/** That of the running test: a copy of one that is built. */
let checkout: string;
let count = 0;
const children: ChildProcess[] = [];

const PAGE_SCRIPT = `
import { appendFileSync, copyFileSync, existsSync, mkdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
const project = new URL("..", import.meta.url);
appendFileSync(new URL("page-builds", project), "x");
for (let n = 0; n < 1_200 && existsSync(new URL("wait", project)); n++) await sleep(50);
mkdirSync(process.argv[2], { recursive: true });
copyFileSync(new URL("web/index.html", project), process.argv[2] + "/index.html");
`;

beforeAll(async () => {
  checkout = join(folder(), "template");
  for (const name of ["src", "web", "packaging"]) await mkdir(join(checkout, name), { recursive: true });
  await copyFile(join(project, "packaging/build.js"), join(checkout, "packaging/build.js"));
  await symlink(join(project, "node_modules"), join(checkout, "node_modules"));
  await put("package.json", JSON.stringify({ type: "module" }));
  await put(
    "tsconfig.json",
    JSON.stringify({ compilerOptions: { module: "NodeNext", lib: ["ES2015"], types: [], skipLibCheck: true } }),
  );
  const compilerOptions = { rootDir: ".", incremental: true, sourceMap: true, declaration: true };
  await put("tsconfig.build.json", JSON.stringify({ extends: "./tsconfig.json", compilerOptions, include: ["src"] }));
  await put("src/main.ts", 'export const version: string = "first";\n');
  await put("web/build.js", PAGE_SCRIPT);
  // What these make is tested with the client's package and with the guide.
  for (const name of ["client.js", "guide.js"]) await put(`packaging/${name}`, "");
  await put("web/index.html", "a page");
  await build();
});
beforeEach(async () => {
  checkout = join(folder(), `checkout-${count++}`);
  await cp(join(folder(), "template"), checkout, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true });
});
afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
});

const put = (file: string, content: string) => writeFile(join(checkout, file), content);
const read = (file: string) => readFile(join(checkout, file), "utf8");

function startBuild(): { readonly child: ChildProcess; readonly code: Promise<number | null>; output(): string } {
  const child = spawn(process.execPath, ["packaging/build.js"], { cwd: checkout, stdio: ["ignore", "pipe", "pipe"] });
  children.push(child);
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk) => {
      text += chunk;
    });
  }
  return { child, code: once(child, "exit").then(([code]) => code as number | null), output: () => text };
}

async function build(): Promise<void> {
  const { code, output } = startBuild();
  expect(await code, output()).toBe(0);
}

/** Makes the checkout one that was never built. */
async function removeBuilds(): Promise<void> {
  for (const name of ["dist", ".dist", "page-builds"]) await rm(join(checkout, name), { recursive: true, force: true });
}

/** Starts a build that does not end before `resume` is called, and waits until its pages are being built. */
async function startPausedBuild() {
  await put("wait", "");
  const before = await read("page-builds").catch(() => "");
  const started = startBuild();
  await expect.poll(() => read("page-builds").catch(() => "")).toHaveLength(before.length + 1);
  return { ...started, resume: () => rm(join(checkout, "wait"), { force: true }) };
}

/** Lists everything that a build writes with the time of their last change. */
async function listChanges(): Promise<string[]> {
  const entries = await readdir(join(checkout, ".dist"), { recursive: true });
  const files = ["dist", ".dist", ...entries.map((name) => join(".dist", name))];
  return Promise.all(files.map(async (name) => `${name} ${(await lstat(join(checkout, name))).mtimeMs}`));
}

test("says that it compiles the first time, and only then", async () => {
  await removeBuilds();
  const first = startBuild();
  expect([await first.code, first.output()]).toEqual([
    0,
    "compiling for the first time: this takes some ten seconds\n",
  ]);
  await put("src/main.ts", 'export const version: string = "second";\n');
  const second = startBuild();
  expect([await second.code, second.output()]).toEqual([0, ""]);
});

test("writes nothing if nothing has changed", async () => {
  expect(await read("dist/src/main.js")).toContain('"first"');
  expect(await read("dist/web/index.html")).toBe("a page");
  const before = await listChanges();
  await build();
  expect(await listChanges()).toEqual(before);
});

test("compiles what has changed, and the pages only if they have", async () => {
  await put("src/main.ts", 'export const version: string = "second";\n');
  await build();
  expect(await read("dist/src/main.js")).toContain('"second"');
  expect(await read("dist/web/index.html")).toBe("a page");
  expect(await read("page-builds")).toBe("x");
  await put("web/index.html", "another page");
  await build();
  expect(await read("dist/web/index.html")).toBe("another page");
});

test("builds again after a change of the settings or the packages", async () => {
  const targets = [await readlink(join(checkout, "dist"))];
  for (const file of ["package.json", "package-lock.json", "tsconfig.build.json"]) {
    await put(file, `${await read(file).catch(() => "{}")}\n`);
    await build();
    targets.push(await readlink(join(checkout, "dist")));
  }
  expect(new Set(targets).size).toBe(4);
});

test("removes the output of deleted and renamed sources", async () => {
  await put("src/old-name.ts", "export const a = 1;\n");
  await put("src/deleted.ts", "export const b = 2;\n");
  await build();
  expect(await readdir(join(checkout, "dist/src"))).toContain("old-name.d.ts");
  await rename(join(checkout, "src/old-name.ts"), join(checkout, "src/new-name.ts"));
  await rm(join(checkout, "src/deleted.ts"));
  await build();
  expect((await readdir(join(checkout, "dist/src"))).sort()).toEqual(
    ["main", "new-name"].flatMap((name) => [`${name}.d.ts`, `${name}.js`, `${name}.js.map`]),
  );
});

test("keeps the last build if the sources do not compile", async () => {
  await put("src/main.ts", "export const version: string = ;\n");
  const { code, output } = startBuild();
  expect(await code).not.toBe(0);
  await expect.poll(output).toContain("src/main.ts(1,32): error TS1109");
  expect(await read("dist/src/main.js")).toContain('"first"');
});

test("builds once if two builds start at the same time", async () => {
  await removeBuilds();
  const first = await startPausedBuild();
  const second = startBuild();
  await expect.poll(second.output).toContain(`waiting for the build of process ${first.child.pid}`);
  await first.resume();
  expect([await first.code, await second.code]).toEqual([0, 0]);
  expect(await read("page-builds")).toBe("x");
  expect(await readdir(join(checkout, ".dist"))).toEqual([basename(await realpath(join(checkout, "dist")))]);
});

test("builds again what changes during the build, and never takes that for the earlier state", async () => {
  await removeBuilds();
  const { resume, code } = await startPausedBuild();
  await put("src/main.ts", 'export const version: string = "second";\n');
  await put("web/index.html", "another page");
  await resume();
  expect(await code).toBe(0);
  expect(await read("dist/src/main.js")).toContain('"second"');
  expect(await read("dist/web/index.html")).toBe("another page");
  await put("src/main.ts", 'export const version: string = "first";\n');
  await put("web/index.html", "a page");
  await build();
  expect(await read("dist/src/main.js")).toContain('"first"');
  expect(await read("dist/web/index.html")).toBe("a page");
});

test("a killed build leaves the last one, and the next build succeeds", async () => {
  await put("src/main.ts", 'export const version: string = "second";\n');
  await put("web/build.js", `${PAGE_SCRIPT}// changed\n`);
  const { child, code, resume } = await startPausedBuild();
  child.kill("SIGKILL");
  expect(await code).toBe(null);
  await resume();
  expect(await read("dist/src/main.js")).toContain('"first"');
  expect(await readdir(join(checkout, ".dist"))).toContain("lock");
  await build();
  expect(await read("dist/src/main.js")).toContain('"second"');
  expect(await readdir(join(checkout, ".dist"))).toHaveLength(2);
});

test("a running program loads its own files after later builds", async () => {
  const version = (name: string) => put("src/version.ts", `export const version: string = "${name}";\n`);
  await version("first");
  await put(
    "src/main.ts",
    'declare const process: any, console: any; process.stdin.once("data", async () => console.log((await import("./version.js")).version));\n',
  );
  await build();
  const program = spawn(process.execPath, ["dist/src/main.js"], { cwd: checkout, stdio: ["pipe", "pipe", "inherit"] });
  onTestFinished(() => void program.kill("SIGKILL"));
  await once(program, "spawn");
  for (const name of ["second", "third"]) {
    await version(name);
    await build();
  }
  program.stdin.end("\n");
  expect(String((await once(program.stdout, "data"))[0])).toBe("first\n");
  expect(await read("dist/src/version.js")).toContain('"third"');
});

test("replaces a folder dist, and builds what is missing", async () => {
  await removeBuilds();
  await mkdir(join(checkout, "dist/src"), { recursive: true });
  await build();
  expect(await read("dist/src/main.js")).toContain('"first"');
  await rm(join(checkout, "dist"));
  await build();
  expect(await read("dist/src/main.js")).toContain('"first"');
  await rm(join(checkout, ".dist"), { recursive: true });
  await build();
  expect(await read("dist/src/main.js")).toContain('"first"');
});
