// The palette. Each command asks the server or runs the command line; none decides anything.
import * as vscode from "vscode";
import type { Server } from "./client";
import { doctor } from "./doctor";
import { SAFE_PATH } from "./interpreter";
import { pickFolder, pickRoot } from "./jobs";

const COMMAND_LINE = "from infrarsi_server.cli.main import main; main()";

type Handler = (server: Server) => Promise<void> | void;

const COMMANDS: Record<string, Handler> = {
  "infrarsi.init": init,
  "infrarsi.lock": lock,
  "infrarsi.doctor": doctor,
  "infrarsi.run": (server) => inTerminal(server, "run"),
  "infrarsi.report": (server) => inTerminal(server, "report"),
  "infrarsi.apply": (server) => inTerminal(server, "apply"),
  "infrarsi.status": status,
  "infrarsi.restart": (server) => server.restart(),
  "infrarsi.showLog": (server) => server.log.show(),
};

/** Register every command; what one throws is shown as one sentence. */
export function registerCommands(server: Server): vscode.Disposable[] {
  return Object.entries(COMMANDS).map(([id, handler]) =>
    vscode.commands.registerCommand(id, async () => {
      try {
        await handler(server);
      } catch (error) {
        server.log.error(`${id}: ${error}`);
        void vscode.window.showErrorMessage(error instanceof Error ? error.message : `${error}`);
      }
    }),
  );
}

async function init(server: Server): Promise<void> {
  const folder = await pickFolder();
  if (!folder) {
    void vscode.window.showWarningMessage("Open the folder of your training repository first.");
    return;
  }
  const launch = await vscode.window.showInputBox({
    title: "InfraRSI: Init",
    prompt: "How is the training started? Leave it empty to let InfraRSI look for it.",
    placeHolder: "torchrun --nproc-per-node 2 train.py --lr 3e-4",
  });
  if (launch === undefined) {
    return;
  }
  const params = { root: folder.uri.toString(), launch: launch.trim() || null };
  const { root, config, jobs } = await server.ask("infrarsi/init", params);
  await vscode.window.showTextDocument(vscode.Uri.joinPath(vscode.Uri.file(root), config));
  const problems = jobs.flatMap((job) => job.problems);
  if (problems.length > 0) {
    void vscode.window.showWarningMessage(`Not understood: ${problems.join(" ")}`);
  }
}

async function lock(server: Server): Promise<void> {
  const root = await pickRoot(server);
  const { jobs } = await server.ask("infrarsi/lock", { root: root?.toString() ?? null });
  const names = jobs.map(({ job, digest }) => `${job} (${digest.slice(0, 12)})`);
  void vscode.window.showInformationMessage(`Locked: ${names.join(", ")}.`);
}

async function status(server: Server): Promise<void> {
  const answer = await server.ask("infrarsi/status", {});
  const runner = answer.runner.is_running
    ? `The runner works on ${answer.runner.campaign ?? "nothing"}.`
    : "No runner is running.";
  const roots = answer.roots.map(({ root, jobs, problem }) => {
    const said = jobs.map(({ job, n_violations }) => `${job}: ${n_violations} violation(s)`);
    return `${root}: ${problem ?? (said.join(", ") || "not locked")}.`;
  });
  void vscode.window.showInformationMessage([...roots, runner].join(" "));
}

/** Run the command line as a task: an argument list, no shell, the output stays readable. */
async function inTerminal(server: Server, command: string): Promise<void> {
  const root = await pickRoot(server);
  if (!server.python || !root) {
    void vscode.window.showWarningMessage("Open the folder of your training repository first.");
    return;
  }
  const args = [SAFE_PATH, "-c", COMMAND_LINE, command];
  const execution = new vscode.ProcessExecution(server.python, args, { cwd: root.fsPath });
  const scope = vscode.workspace.getWorkspaceFolder(root) ?? vscode.TaskScope.Workspace;
  const definition = { type: "process", id: `infrarsi.${command}` };
  const task = new vscode.Task(definition, scope, command, "InfraRSI", execution, []);
  await vscode.tasks.executeTask(task);
}
