"""Writing a knob's value into a YAML, TOML or JSON file; everything else stays byte for byte.

The value is found afresh by its dotted name, because lines move. Leaves out adding a name that is
not there.
"""

import json

from infrarsi.frozen import Scalar
from infrarsi.knobs import Binding
from infrarsi.patches.recipe import Declined
from infrarsi.reading.documents import Format, format_of, parse_document

DOCUMENT_CARRIERS = ("yaml", "toml", "json")


def set_document_value(binding: Binding, text: str, value: Scalar) -> str | Declined:
    """The file's text with the value under the binding's name replaced.

    Declines where the name is not there any more, or where what is written would be read back as
    another value.
    """
    file = binding.file or ""
    form: Format | None = format_of(file)
    if form is None or form != binding.carrier:
        return Declined(reason=f"{file} is no {binding.carrier} file.")
    leaf = parse_document(file, text, form).leaf(binding.name)
    if leaf is None or not leaf.plain:
        return Declined(reason=f"{binding.name} is not set in {file} any more.")
    written = _literal(form, value, text[leaf.start : leaf.end])
    new = text[: leaf.start] + written + text[leaf.end :]
    back = parse_document(file, new, form).leaf(binding.name)
    if back is None or back.value != value or type(back.value) is not type(value):
        return Declined(reason=f"{binding.name} in {file} cannot be written as {value!r}.")
    return new


def _literal(form: Format, value: Scalar, old: str) -> str:
    """The value as the format writes it, in the old text's quotes where it had some."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _number(form, value)
    quoted = json.dumps(value, ensure_ascii=False)
    is_bare = form == "yaml" and not old.startswith(('"', "'"))
    plain = value.replace("_", "").replace("-", "").isalnum() and value[:1].isalpha()
    words = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
    return value if is_bare and plain and value.lower() not in words else quoted


def _number(form: Format, value: float) -> str:
    """A float; YAML 1.1 wants a point and a signed exponent, and TOML a digit on both sides."""
    text = repr(value)
    mantissa, e, exponent = text.partition("e")
    if not e or form == "json":
        return text
    mantissa = mantissa if "." in mantissa else f"{mantissa}.0"
    sign = "" if exponent.startswith(("+", "-")) else "+"
    return f"{mantissa}e{sign}{exponent}"
