import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import vsce from "@vscode/vsce";
import { fakeVscode, requireWith } from "./fake-vscode.mjs";

const root = path.resolve(import.meta.dirname, "../..");
const manifest = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));
const bundle = path.join(root, "dist/extension.js");

const context = {
  subscriptions: [],
  extensionPath: root,
  globalStorageUri: { fsPath: path.join(root, "build/no-such-folder") },
};

test("the commands of the manifest are those the bundle registers", async () => {
  const vscode = fakeVscode();
  await requireWith(vscode.module, bundle).activate(context);
  const declared = manifest.contributes.commands.map(({ command }) => command);
  assert.deepEqual([...vscode.registered.keys()].sort(), declared.sort());
});

test("without an interpreter one sentence says what is missing", async () => {
  const vscode = fakeVscode();
  await requireWith(vscode.module, bundle).activate(context);
  assert.equal(vscode.errors.length, 1);
  assert.match(vscode.errors[0], /no interpreter was found.*Python 3\.11/);
});

test("an interpreter without infrarsi is refused before it is started as a server", async () => {
  const vscode = fakeVscode({ interpreter: "/bin/false" });
  await requireWith(vscode.module, bundle).activate(context);
  assert.match(vscode.errors[0], /\/bin\/false/);
});

test("a relative interpreter is refused, for the workspace could supply it", async () => {
  const vscode = fakeVscode({ interpreter: "env/bin/python" });
  await requireWith(vscode.module, bundle).activate(context);
  assert.match(vscode.errors[0], /absolute path/);
});

test("the package holds the allow-listed files and nothing else", async () => {
  const files = await vsce.listFiles({ cwd: root, packageManager: vsce.PackageManager.None });
  assert.deepEqual(files.sort(), ["LICENSE", "README.md", "dist/extension.js", "package.json"]);
});

test("the extension wakes on infrarsi.toml and on its commands only", () => {
  assert.deepEqual(manifest.activationEvents, ["workspaceContains:**/infrarsi.toml"]);
});

test("the editor's types are those of the oldest editor supported", () => {
  const types = manifest.devDependencies["@types/vscode"];
  assert.equal(manifest.engines.vscode, `^${types}`);
});

test("a workspace cannot choose the interpreter before it is trusted", () => {
  const { untrustedWorkspaces } = manifest.capabilities;
  assert.equal(untrustedWorkspaces.supported, "limited");
  assert.deepEqual(untrustedWorkspaces.restrictedConfigurations, ["infrarsi.interpreter"]);
});
