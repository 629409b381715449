"""The user's folder and repository: files, snapshots, commits, the job's own Python."""
