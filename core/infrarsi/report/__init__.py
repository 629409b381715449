"""The report model and its faces: Markdown, JSON, and static findings as text and SARIF."""
