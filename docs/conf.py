"""Settings of Sphinx for docs/site.py."""

from typing import Any

from harness import __version__

project = "sentence-harness"
author = "the authors of sentence-harness"
release = __version__
html_title = project
root_doc = "docs/index"
suppress_warnings = ["myst.xref_missing"]  # links to files that are no pages; tests check all links
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}
html_show_sourcelink = False
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
myst_heading_anchors = 3
myst_enable_extensions = ["attrs_inline"]
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88
add_module_names = False
html_show_copyright = False
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
smartquotes_action = "qe"  # quotation marks and dots; two hyphens are those of an option
copybutton_prompt_text = r"\$ "
copybutton_prompt_is_regexp = True
default_role = "literal"

_SECTIONS = ("Args:", "Attributes:", "Raises:", "Returns:", "Yields:")


def _literal(
    app: object, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Indented code and formulas of a docstring are literal blocks, as they are on a terminal."""
    before, read = "", list[str]()
    for line in lines:
        begins = (
            line.startswith("    ")
            and not line.lstrip().startswith(">>>")
            and read
            and not read[-1].strip()
        )
        if begins and not before.startswith(" ") and before not in _SECTIONS:
            read += ["::", ""]
        read.append(line)
        before = line if line.strip() else before
    lines[:] = read


def _signature(
    app: object,
    what: str,
    name: str,
    thing: object,
    options: object,
    signature: str | None,
    returns: str | None,
) -> tuple[str | None, str | None]:
    """Defaults that are made anew for each instance are no Python, and would leave a signature as
    plain text.
    """
    return signature.replace("<factory>", "...") if signature else signature, returns


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", _literal, priority=100)  # before napoleon
    app.connect("autodoc-process-signature", _signature)
