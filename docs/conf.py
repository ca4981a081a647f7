"""Settings of Sphinx for docs/site.py."""

from harness import __version__

project = "sentence-harness"
author = "the authors of sentence-harness"
release = __version__
html_title = project
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
copybutton_prompt_text = r"\$ "
copybutton_prompt_is_regexp = True
default_role = "literal"
