"""The documentation as a site: scripts/site runs Sphinx on docs/ and on what is made from the sources."""
import os
import sys

ROOT = os.environ["CDACQ_SOURCE_DIR"]
sys.path[:0] = [os.path.join(ROOT, "python"), os.path.join(ROOT, "docs/site")]
import headers  # noqa: E402

project = "cdacq"
author = "the cdacq contributors"
with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
    release = version = headers.project_version(file.read())
html_title = f"cdacq {version}"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.graphviz"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4
graphviz_output_format = "svg"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "undoc-members": True}
autodoc_typehints = "signature"
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["wide.css"]
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False
exclude_patterns = ["man"]
# Documents of the repository lead to its files; the site has the documents alone.
suppress_warnings = ["myst.header"]
