// Doctor from the palette: says first what will run, shows progress, and asks on cancel whether
// to stop the campaign or to leave it running.
import * as vscode from "vscode";
import type { Server } from "./client";
import { pickJob } from "./jobs";
import type { DoctorReport } from "./wire";

const MIB = 2 ** 20;

export async function doctor(server: Server): Promise<void> {
  const picked = await pickJob(server);
  if (!picked || !(await consent(picked.job))) {
    return;
  }
  await vscode.window.withProgress(
    {
      location: vscode.ProgressLocation.Notification,
      title: `InfraRSI Doctor: ${picked.job}`,
      cancellable: true,
    },
    async (progress, cancelled) => {
      const stop = new vscode.CancellationTokenSource();
      const answer = server
        .askWithProgress("infrarsi/doctor", picked, reporter(progress), stop.token)
        .then(tell, (error: Error) => tellFailure(error, stop.token));
      const left = new Promise<void>((leave) => {
        cancelled.onCancellationRequested(async () => {
          if (await wantsToStop()) {
            stop.cancel();
          } else {
            leave();
          }
        });
      });
      await Promise.race([answer, left]);
    },
  );
}

function reporter(progress: vscode.Progress<{ message?: string; increment?: number }>) {
  let reached = 0;
  return (message: string, percentage: number | undefined): void => {
    const increment = Math.max(0, (percentage ?? reached) - reached);
    reached += increment;
    progress.report({ message, increment });
  };
}

async function consent(job: string): Promise<boolean> {
  const choice = await vscode.window.showInformationMessage(
    `Run Doctor on ${job}?`,
    {
      modal: true,
      detail:
        "The untouched baseline of the job is run several times in a sandbox on this machine, " +
        "to time and profile it and to measure the noise. It takes a few minutes; the plan is " +
        "shown before the first run.",
    },
    "Run Doctor",
  );
  return choice !== undefined;
}

async function wantsToStop(): Promise<boolean> {
  const choice = await vscode.window.showWarningMessage(
    "Doctor is still measuring.",
    "Stop it",
    "Leave it running",
  );
  return choice === "Stop it";
}

function tell({ calibration }: DoctorReport): void {
  const { value, low, high } = calibration.step_time_s;
  const peak = Math.max(...calibration.peak_mem_bytes) / MIB;
  void vscode.window.showInformationMessage(
    `Measured: ${value.toFixed(3)} s a step (${low.toFixed(3)} to ${high.toFixed(3)}), ` +
      `MFU ${(100 * calibration.mfu_frac).toFixed(1)} %, peak ${peak.toFixed(0)} MiB.`,
  );
}

function tellFailure(error: Error, stopped: vscode.CancellationToken): void {
  if (stopped.isCancellationRequested) {
    void vscode.window.showInformationMessage("Doctor was stopped.");
  } else {
    void vscode.window.showErrorMessage(error.message);
  }
}
