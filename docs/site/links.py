"""Links of the site: those to files that it does not have become text, and all others must lead somewhere.

    links.py repository SOURCE     rewrites the pages in SOURCE
    links.py check OUT             fails if a link in the built site is broken
"""
import html.parser
import pathlib
import re
import sys
import urllib.parse


def unlink(page, source):
    """Links to files of the repository that are no pages become their texts."""
    def replaced(found):
        target = found[2].split("#")[0]
        is_page = not target or "://" in target or (page.parent / target).resolve().is_file()
        return found[0] if is_page else found[1]

    text = page.read_text(encoding="utf-8")
    page.write_text(re.sub(r"\[([^\]\[]*(?:\[\][^\]\[]*)*)\]\(([^)\s]+)\)", replaced, text), encoding="utf-8")


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value and tag != "link":
                self.links.append(value)


def broken(out):
    pages = {path.resolve(): Page(path) for path in out.rglob("*.html")}
    for path, page in pages.items():
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme:
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            fragment = urllib.parse.unquote(parts.fragment)
            if not target.is_file():
                yield f"{path.relative_to(out.resolve())}: {link}: no such file"
            elif fragment and target in pages and fragment not in pages[target].anchors:
                yield f"{path.relative_to(out.resolve())}: {link}: no such place"


def main():
    what, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    if what == "repository":
        for page in folder.rglob("*.md"):
            unlink(page, folder)
        return 0
    found = sorted(set(broken(folder)))
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
