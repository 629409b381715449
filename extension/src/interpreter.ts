// Which Python runs the server. The training job's own Python is another matter: it is named in
// infrarsi.toml and used by the runner only.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import * as path from "node:path";
import { promisify } from "node:util";
import * as vscode from "vscode";

const run = promisify(execFile);

/** With -P a workspace file named like a library cannot shadow it. */
export const SAFE_PATH = "-P";

const PROBE = [
  "import sys",
  "assert sys.version_info >= (3, 11), 'Python 3.11 or newer is needed'",
  "import infrarsi_server.lsp",
].join("\n");

interface PythonExtension {
  environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { path: string };
    resolveEnvironment(
      env: { path: string } | string,
    ): Promise<{ executable: { uri?: vscode.Uri } } | undefined>;
  };
}

/** The explicit setting, else the extension's own environment, else the Python extension's. */
export async function findInterpreter(
  context: vscode.ExtensionContext,
): Promise<string | undefined> {
  const chosen = vscode.workspace.getConfiguration("infrarsi").get("interpreter", "").trim();
  if (chosen) {
    return chosen;
  }
  const own = privatePython(context);
  return existsSync(own) ? own : await fromPythonExtension();
}

/** Why this interpreter cannot run the server, or undefined where it can. */
export async function whyUnusable(python: string, cwd: string): Promise<string | undefined> {
  if (!path.isAbsolute(python)) {
    return "infrarsi.interpreter must be an absolute path";
  }
  try {
    await run(python, [SAFE_PATH, "-c", PROBE], { cwd, timeout: 30_000 });
    return undefined;
  } catch (error) {
    const { stderr, message } = error as { stderr?: string; message: string };
    return (stderr || message).trim().split("\n").at(-1);
  }
}

function privatePython(context: vscode.ExtensionContext): string {
  const inside = process.platform === "win32" ? ["Scripts", "python.exe"] : ["bin", "python"];
  return path.join(context.globalStorageUri.fsPath, "env", ...inside);
}

/** Often an environment inside the workspace, so never asked for in an untrusted one. */
async function fromPythonExtension(): Promise<string | undefined> {
  const found = vscode.extensions.getExtension<PythonExtension>("ms-python.python");
  if (!found || !vscode.workspace.isTrusted) {
    return undefined;
  }
  const python = await found.activate();
  const resource = vscode.workspace.workspaceFolders?.[0]?.uri;
  const active = python.environments.getActiveEnvironmentPath(resource);
  const resolved = await python.environments.resolveEnvironment(active);
  return resolved?.executable.uri?.fsPath;
}
