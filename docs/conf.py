"""Configuration of the documentation site.

`make docs` builds the site into docs/_build and treats warnings as errors. Pages load nothing from
other machines: formulas are converted to MathML, which every current browser renders, and the theme
includes its own styles and scripts.
"""

import re
from importlib.metadata import version as installed
from unicodedata import lookup

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

project = "evgp"
author = "the evgp contributors"
version = release = installed("evgp")

extensions = ["myst_parser", "sphinx_copybutton"]
exclude_patterns = ["_build", "figures/*.py"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
suppress_warnings = ["misc.highlighting_failure"]
pygments_style, pygments_dark_style = "tango", "monokai"

html_theme = "furo"
html_title = "evgp"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#2f43b8", "color-brand-content": "#2f43b8"},
    "dark_css_variables": {"color-brand-primary": "#98a6ff", "color-brand-content": "#98a6ff"},
}

# Copy commands and examples without prompts and output.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


MARK = "# not run by the tests: "
BAR = '<mo stretchy="false" lspace="0" rspace="0">|</mo>'


def script(letter: re.Match[str]) -> str:
    """A script capital as its own character, because browsers ignore the attribute."""
    kind = "SCRIPT" if letter[1] in "BEFHILMR" else "MATHEMATICAL SCRIPT"
    return f"<mi>{lookup(f'{kind} CAPITAL {letter[1]}')}</mi>"


def mathml(formula: str, display: str) -> str:
    """Convert a formula to MathML with fixed-size bars, upright capitals and function spacing."""
    text = convert(formula, display=display)
    text = re.sub(r'<mi mathvariant="script">([A-Z])</mi>', script, text)
    text = re.sub(r"<mo[^>]*>(&#x0007C;|\|)</mo>", BAR, text)
    text = re.sub(
        r"<mi>(&#x0*3(?:9[1-9A-F]|A[0-9]);)</mi>", r'<mi mathvariant="normal">\1</mi>', text
    )
    text = re.sub(r"<mi>(&#x02AAF;)</mi>", r"<mo>\1</mo>", text)
    return re.sub(r"(<mi>[a-z]{3,}</mi>)(?=<m[ifsn])", r'\1<mspace width="0.17em"/>', text)


def inline(self: HTML5Translator, node: nodes.math) -> None:
    """Write an inline formula."""
    self.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def block(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a display formula, which scrolls on narrow screens."""
    self.body.append(f'<div class="formula">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def trim(_: Sphinx, doctree: nodes.document) -> None:
    """Remove what only the tests need: empty last lines, and marks of code that is not run."""
    for code in doctree.findall(nodes.literal_block):
        lines = code.astext().rstrip().splitlines()
        text = "\n".join(line for line in lines if not line.startswith(MARK))
        code[:] = [nodes.Text(text)]
        code.rawsource = text  # Sphinx highlights only code whose source is its text.


def setup(app: Sphinx) -> None:
    """Register the MathML renderer and the trimming of code blocks."""
    app.connect("doctree-read", trim)
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
