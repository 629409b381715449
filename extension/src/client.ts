// Starts, restarts and asks the language server: `<python> -P -m infrarsi_server.lsp` over stdio.
import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import {
  CancellationToken,
  LanguageClient,
  type LanguageClientOptions,
  type ServerOptions,
  WorkDoneProgress,
} from "vscode-languageclient/node";
import { findInterpreter, SAFE_PATH, whyUnusable } from "./interpreter";
import type { Requests } from "./wire";

const READABLE = "**/*.{py,toml,yaml,yml,json}";

/** The one server of this window. */
export class Server implements vscode.Disposable {
  private client: LanguageClient | undefined;

  /** The interpreter the server runs on, once found. */
  python: string | undefined;

  constructor(
    private readonly context: vscode.ExtensionContext,
    readonly log: vscode.LogOutputChannel,
  ) {}

  /** Find the interpreter and start; says what to do where it cannot. */
  async start(): Promise<void> {
    this.python = await findInterpreter(this.context);
    if (!this.python) {
      void this.explain("no interpreter was found");
      return;
    }
    const reason = await whyUnusable(this.python, this.context.extensionPath);
    if (reason) {
      void this.explain(`${this.python}: ${reason}`);
      return;
    }
    this.client = this.createClient(this.python);
    await this.client.start();
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    await client?.dispose();
  }

  dispose(): void {
    void this.stop();
  }

  /** Send one `infrarsi/*` request; starts the server if it is not running. */
  async ask<M extends keyof Requests>(
    method: M,
    params: Requests[M]["params"],
    token: vscode.CancellationToken = CancellationToken.None,
  ): Promise<Requests[M]["result"]> {
    if (!this.client) {
      await this.start();
    }
    if (!this.client) {
      throw new Error("The InfraRSI server is not running.");
    }
    return await this.client.sendRequest<Requests[M]["result"]>(method, params, token);
  }

  /** Send a request that reports progress on a token of ours. */
  async askWithProgress<M extends keyof Requests>(
    method: M,
    params: Requests[M]["params"],
    report: (message: string, percentage: number | undefined) => void,
    token: vscode.CancellationToken,
  ): Promise<Requests[M]["result"]> {
    const workDoneToken = randomUUID();
    const listening = this.client?.onProgress(WorkDoneProgress.type, workDoneToken, (value) => {
      if (value.kind !== "end") {
        report(value.message ?? "", value.percentage);
      }
    });
    try {
      return await this.ask(method, { ...params, workDoneToken }, token);
    } finally {
      listening?.dispose();
    }
  }

  private createClient(python: string): LanguageClient {
    const server: ServerOptions = {
      command: python,
      args: [SAFE_PATH, "-m", "infrarsi_server.lsp"],
      options: { cwd: this.context.extensionPath },
    };
    const options: LanguageClientOptions = {
      documentSelector: [{ scheme: "file", pattern: READABLE }],
      outputChannel: this.log,
      synchronize: { configurationSection: "infrarsi" },
      initializationOptions: {
        guard: vscode.workspace.getConfiguration("infrarsi").get("guard", "warn"),
        trusted: vscode.workspace.isTrusted,
      },
    };
    return new LanguageClient("infrarsi", "InfraRSI", server, options);
  }

  private async explain(reason: string): Promise<void> {
    this.log.error(`The server was not started: ${reason}`);
    const choice = await vscode.window.showErrorMessage(
      `InfraRSI's server was not started: ${reason}. ` +
        "It needs Python 3.11 or newer with infrarsi installed.",
      "Choose interpreter",
    );
    if (choice) {
      await vscode.commands.executeCommand("workbench.action.openSettings", "infrarsi.interpreter");
    }
  }
}
