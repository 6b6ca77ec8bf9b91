"""The site: `make docs` builds it into docs/_build, and a warning is an error.

Pages ask nothing of other machines: formulas become MathML when the site is built, which every
current browser draws by itself, and the theme brings its own styles and scripts.
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

# A copied command or example has neither prompts nor answers.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


BAR = '<mo stretchy="false" lspace="0" rspace="0">|</mo>'


def script(letter: re.Match[str]) -> str:
    """A script capital as its own character: browsers no longer heed the attribute."""
    kind = "SCRIPT" if letter[1] in "BEFHILMR" else "MATHEMATICAL SCRIPT"
    return f"<mi>{lookup(f'{kind} CAPITAL {letter[1]}')}</mi>"


def mathml(formula: str, display: str) -> str:
    """One formula as MathML: bars that do not grow, upright capitals, a space after a function."""
    made = convert(formula, display=display)
    made = re.sub(r'<mi mathvariant="script">([A-Z])</mi>', script, made)
    made = re.sub(r"<mo[^>]*>(&#x0007C;|\|)</mo>", BAR, made)
    made = re.sub(
        r"<mi>(&#x0*3(?:9[1-9A-F]|A[0-9]);)</mi>", r'<mi mathvariant="normal">\1</mi>', made
    )
    made = re.sub(r"<mi>(&#x02AAF;)</mi>", r"<mo>\1</mo>", made)
    return re.sub(r"(<mi>[a-z]{3,}</mi>)(?=<m[ifsn])", r'\1<mspace width="0.17em"/>', made)


def inline(self: HTML5Translator, node: nodes.math) -> None:
    """A formula in a line."""
    self.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def block(self: HTML5Translator, node: nodes.math_block) -> None:
    """A formula of its own, which scrolls where the screen is narrower."""
    self.body.append(f'<div class="formula">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def trim(_: Sphinx, doctree: nodes.document) -> None:
    """Examples end with an empty line, which the tests need and readers do not."""
    for code in doctree.findall(nodes.literal_block):
        code[:] = [nodes.Text(code.astext().rstrip())]


def setup(app: Sphinx) -> None:
    """Draw formulas our way, and code without empty ends."""
    app.connect("doctree-read", trim)
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
