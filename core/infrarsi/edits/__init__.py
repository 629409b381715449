"""The one type for a change of text; bindings, fixes, recipes and proposals all make edits."""

from infrarsi.edits.edit import Edit, apply_edits, diff_texts

__all__ = ["Edit", "apply_edits", "diff_texts"]
