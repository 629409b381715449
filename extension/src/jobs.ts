// Which folder and job a command is about.
import * as vscode from "vscode";
import type { Server } from "./client";

/** `root` is a file URI. */
export interface PickedJob {
  root: string;
  job: string;
}

/** The only folder of the window, or the one picked. */
export async function pickFolder(): Promise<vscode.WorkspaceFolder | undefined> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  return folders.length > 1 ? await vscode.window.showWorkspaceFolderPick() : folders[0];
}

/** The only locked job, or the one picked. Says so where there is none. */
export async function pickJob(server: Server): Promise<PickedJob | undefined> {
  const { roots } = await server.ask("infrarsi/status", {});
  const jobs = roots.flatMap(({ root, jobs }) =>
    jobs.map(({ job }) => ({ root: vscode.Uri.file(root).toString(), job })),
  );
  if (jobs.length === 0) {
    void vscode.window.showWarningMessage(
      roots.find(({ problem }) => problem)?.problem ??
        "No job is locked yet. Run InfraRSI: Init, then InfraRSI: Lock.",
    );
  }
  if (jobs.length < 2) {
    return jobs[0];
  }
  const rows = jobs.map((picked) => ({
    label: picked.job,
    description: picked.root,
    picked: false,
    value: picked,
  }));
  return (await vscode.window.showQuickPick(rows, { title: "Which job?" }))?.value;
}

/** The folder whose infrarsi.toml a terminal command should use. */
export async function pickRoot(server: Server): Promise<vscode.Uri | undefined> {
  const { roots } = await server.ask("infrarsi/status", {});
  if (roots.length > 1) {
    const picked = await vscode.window.showQuickPick(
      roots.map(({ root }) => root),
      { title: "Which folder?" },
    );
    return picked ? vscode.Uri.file(picked) : undefined;
  }
  return roots[0] ? vscode.Uri.file(roots[0].root) : (await pickFolder())?.uri;
}
