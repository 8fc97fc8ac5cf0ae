"""Makes of the pages, which are written to be read in the repository too, what a site wants."""

import posixpath
import re

from mkdocs.exceptions import PluginError

REPOSITORY = "https://github.com/belfry-scheduler/belfry/blob/main/"

EDGE = re.compile(r"^\s*(\S+) --> (\S+?)(?:: (.*))?$")


def on_nav(nav, **_):
    pages = [page.file.src_uri for page in nav.pages]
    if twice := {page for page in pages if pages.count(page) > 1}:
        raise PluginError(f"in the menu twice: {', '.join(sorted(twice))}")


TITLE = re.compile(r"(?m)^# (.*)$")


def on_page_markdown(markdown, page, files, **_):
    markdown = re.sub(r"(?ms)^```mermaid\n(.*?)^```$", lambda m: edges(m[1]), markdown)
    # What a fence says to tests ("sh run=first") is nothing to readers.
    markdown = re.sub(r"(?m)^```(\w+) .*$", r"```\1", markdown)
    if page.file.src_uri.startswith("reference/"):
        # Help texts name pages by their files in the repository.
        markdown = re.sub(r"(?<![\w/(`])docs/([\w-]+\.md)", r"[../\1](../\1)", markdown)
    markdown = re.sub(r"\[([\w./-]+\.md)\]\(([\w./-]+\.md)(#[\w-]+)?\)", lambda m: titled(m, page, files), markdown)
    return re.sub(r"\]\((\.\./[^)\s]*)\)", lambda m: outside(m, page), markdown)


def titled(link, page, files):
    """A file's name is what a reader of the repository looks for; here pages have titles."""
    other = files.get_file_from_path(posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_uri), link[2])))
    title = other and TITLE.search(other.content_string)
    return f"[{title[1].split(': ')[0]}]({link[2]}{link[3] or ''})" if title else link[0]


def outside(link, page):
    """Files of the repository that are no page are linked to where the repository is."""
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_uri), link[1]))
    return link[0] if path.startswith("docs/") else f"]({REPOSITORY}{path})"


def edges(diagram):
    """A drawing would need a script of a megabyte; a table of its edges can be searched, too."""
    rows = [m.groups() for m in map(EDGE.match, diagram.splitlines()) if m]
    lines = [f"| {'(new)' if a == '[*]' else a} | {b} | {why or ''} |\n" for a, b, why in rows]
    return "| from | to | when |\n|---|---|---|\n" + "".join(lines)
