// InfraRSI's client in the editor: starts the language server and registers the palette.
import * as vscode from "vscode";
import { Server } from "./client";
import { registerCommands } from "./commands";

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const log = vscode.window.createOutputChannel("InfraRSI", { log: true });
  const server = new Server(context, log);
  context.subscriptions.push(
    log,
    server,
    ...registerCommands(server),
    vscode.workspace.onDidGrantWorkspaceTrust(() => server.restart()),
    vscode.workspace.onDidChangeConfiguration(async (change) => {
      if (change.affectsConfiguration("infrarsi.interpreter")) {
        await server.restart();
      }
    }),
  );
  await server.start();
}
